"""Findings: what the readings of an audit mean.

The one place that says what leaks, how far that is known, and what to do about it.
"""

from leaktight.findings.batch_statistics import BatchStatistics
from leaktight.findings.images import Images
from leaktight.findings.kind import LeakKind, leak_kinds
from leaktight.findings.labels import Labels
from leaktight.findings.property import Property
from leaktight.findings.samples import Samples
from leaktight.findings.ungraded import Ungraded

__all__ = ["BatchStatistics", "Images", "Labels", "LeakKind", "Property", "Samples", "Ungraded", "leak_kinds"]
