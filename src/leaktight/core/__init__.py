"""The ideas, no algorithm."""
