"""Leaktight: what do shared messages leak, and what does each defence do about it, at what cost in accuracy?"""

__version__ = "0.1.0"
