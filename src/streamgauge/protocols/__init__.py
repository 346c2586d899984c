"""When a site must speak: each module is two pure state machines and their messages.

Events go in (`update`, `advance`, `receive`), messages come out; time comes as an argument.
"""
