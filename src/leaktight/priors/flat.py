"""Flat: every example is as likely as any other."""

from __future__ import annotations

from typing import Literal

from torch import Tensor, nn

from leaktight.core.task import Batch
from leaktight.priors.network_units import NetworkUnits
from leaktight.priors.prior import Coordinates, Prior


class Flat(Prior):
    """Believe nothing about examples, as most published attacks do.

    The search runs in the units that the network sees.

    Example:
        >>> import torch
        >>> coordinates = Flat().coordinates((1, 8, 8), nn.Identity(), None, 10)
        >>> z = torch.rand(2, coordinates.width)
        >>> coordinates.penalty(z, coordinates.decode(z, torch.zeros(2, 10))).item()
        0.0
    """

    kind: Literal["flat"] = "flat"

    def coordinates(
        self, shape: tuple[int, ...], normalise: nn.Module, public: Batch | None, classes: int
    ) -> Coordinates:
        """Return the network's units."""
        return _Flat(shape, normalise)


class _Flat(NetworkUnits):
    def penalty(self, z: Tensor, inputs: Tensor) -> Tensor:
        return z.new_zeros(())
