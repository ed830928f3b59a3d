"""Findings: what the readings of an audit mean. The one place that says what leaks, how far that is known, and what to do about it."""
