"""Where promises are checked: exact answers, and simulated networks that deliver every byte."""
