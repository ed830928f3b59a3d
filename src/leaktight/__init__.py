"""Leaktight: what do shared messages leak, and which defence stops it at what cost."""

__version__ = "0.1.0"
