"""Near grey: images are grey until a message says otherwise."""

from __future__ import annotations

import math
from typing import Literal

from pydantic import Field
from torch import Tensor, nn

from leaktight.core.task import Batch
from leaktight.priors.prior import Coordinates, Prior, Whitened


class NearGrey(Prior):
    """Every pixel is normal around one half, each by itself, for whoever wants to see how a prior is written.

    Args:
        spread: the standard deviation of a pixel, above 0.
    """

    kind: Literal["example_near_grey"] = "example_near_grey"
    spread: float = Field(0.25, gt=0)

    def coordinates(
        self, shape: tuple[int, ...], normalise: nn.Module, public: Batch | None, classes: int
    ) -> Coordinates:
        """Return coordinates in which the prior is the standard normal law."""
        return _Grey(shape, self.spread)


class _Grey(Whitened):
    def __init__(self, shape: tuple[int, ...], spread: float) -> None:
        super().__init__(shape)
        self._spread = spread

    @property
    def width(self) -> int:
        return math.prod(self.shape)

    def decode(self, z: Tensor, targets: Tensor) -> Tensor:
        return 0.5 + self._spread * z.view(-1, *self.shape)

    def encode(self, inputs: Tensor, targets: Tensor) -> Tensor:
        return (inputs - 0.5).flatten(1) / self._spread
