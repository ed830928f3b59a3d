"""Utility: a cell that asks only how good the trained model is."""

from __future__ import annotations

from typing import Literal

from leaktight.core.probe import Finding, Probe
from leaktight.core.random import Stream
from leaktight.core.run import Run


class Utility(Probe):
    """Reads nothing of a run: the record then carries the utility of its training and nothing else.

    For tables of accuracies, where a training run is wanted and no attack.

    Example:
        >>> print(Utility())
        utility
    """

    kind: Literal["utility"] = "utility"

    def read(self, run: Run, rng: Stream) -> Finding:
        """Find nothing."""
        return Finding(readings=())
