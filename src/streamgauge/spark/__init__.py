"""Sketches and protocols on Spark."""
