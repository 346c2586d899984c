"""The demo: Spark replays a trace, and its answers stand beside the exact ones."""
