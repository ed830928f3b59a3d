"""Edge error: how far the outlines of a guessed image are from the true ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

from torch import Tensor

from leaktight.core.metric import Direction
from leaktight.metrics.comparison import Comparison
from leaktight.metrics.pairing import is_image


class EdgeError(Comparison):
    """Mean squared error of differences between neighbouring pixels, for whoever wants to see how to write a metric.

    Pairing, intervals, chance levels and both batches (raw and used) come from `Comparison`.
    """

    kind: Literal["example_edge_error"] = "example_edge_error"
    leaks: ClassVar[Direction] = "low"
    clamp: ClassVar[bool] = True

    def measure(self, guess: Tensor, truth: Tensor) -> Tensor:
        """Return one number for each pair of images."""
        errors = guess - truth
        across, down = errors.diff(dim=-1), errors.diff(dim=-2)
        return across.square().flatten(1).mean(1) + down.square().flatten(1).mean(1)

    def applies(self, shape: Sequence[int]) -> bool:
        """Apply to images alone."""
        return is_image(shape)
