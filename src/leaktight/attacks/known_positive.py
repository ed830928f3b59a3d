"""Known positive: what attacks share that compare each example of a step with one whose label is known."""

from __future__ import annotations

import abc
from typing import final

from torch import Tensor

from leaktight.attacks.label_attack import LabelAttack
from leaktight.core.threat import Hints, Knows


class KnownPositive(LabelAttack):
    """Scores each example of a step by its likeness to the first known positive.

    Write `compare`. The known example is not scored; a step in which none is known is left out.
    """

    @property
    def needs(self) -> frozenset[Knows]:
        """Hints."""
        return frozenset({Knows.HINTS})

    @abc.abstractmethod
    def compare(self, rows: Tensor, known: Tensor) -> Tensor:
        """Return one score for each row, given that of the known positive."""

    @final
    def score(self, rows: Tensor, hints: Hints) -> Tensor | None:
        """Return the comparisons; None if no positive is known."""
        known = self.used_positions(hints)
        return self.compare(rows, rows[known[0]]) if len(known) else None

    @final
    def used_positions(self, hints: Hints) -> Tensor:
        """Return the first known positive."""
        return hints.of(1)[:1]
