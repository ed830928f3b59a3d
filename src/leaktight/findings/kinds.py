"""The kinds of leak that there are, in the order in which they are told."""

from __future__ import annotations

from leaktight.findings.images import Images
from leaktight.findings.kind import LeakKind
from leaktight.findings.labels import Labels
from leaktight.findings.property import Property
from leaktight.findings.samples import Samples
from leaktight.findings.ungraded import Ungraded

KINDS: tuple[LeakKind, ...] = (Images(), Samples(), Labels(), Property(), Ungraded())
