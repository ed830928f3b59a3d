"""Network units: examples as a network sees them, shifted and scaled channel by channel."""

from __future__ import annotations

import abc
import math

import torch
from torch import Tensor, nn

from leaktight.core.task import Normalise
from leaktight.priors.prior import Coordinates


def network_units(normalise: nn.Module, shape: tuple[int, ...]) -> tuple[Tensor, Tensor]:
    """Return the shift and the scale from the units that a network sees to natural ones.

    Args:
        normalise: what the network does to its inputs first. One that is no `Normalise` is taken to leave them as they
            are.
        shape: the shape of one example's inputs.

    Example:
        >>> shift, scale = network_units(Normalise([0.5], [0.25]), (1, 8, 8))
        >>> shift.item(), scale.item()
        (0.5, 0.25)
    """
    if not isinstance(normalise, Normalise):
        return torch.zeros(1), torch.ones(1)
    return normalise.units(len(shape))


class NetworkUnits(Coordinates):
    r"""Coordinates that are the network's own units: \(z = (x - \text{mean}) / \text{std}\).

    Args:
        shape: the shape of one example's inputs.
        normalise: what the network does to its inputs first.
    """

    def __init__(self, shape: tuple[int, ...], normalise: nn.Module) -> None:
        super().__init__(shape)
        self._shift, self._scale = network_units(normalise, shape)

    @property
    def width(self) -> int:
        """One number for each number of an example."""
        return math.prod(self.shape)

    def decode(self, z: Tensor, targets: Tensor) -> Tensor:
        """Return the examples in natural units."""
        return z.view(-1, *self.shape) * self._scale.to(z.device, z.dtype) + self._shift.to(z.device, z.dtype)

    def encode(self, inputs: Tensor, targets: Tensor) -> Tensor:
        """Return the examples as the network sees them, in a row each."""
        shift, scale = self._shift.to(inputs.device, inputs.dtype), self._scale.to(inputs.device, inputs.dtype)
        return ((inputs - shift) / scale).flatten(1)

    @abc.abstractmethod
    def penalty(self, z: Tensor, inputs: Tensor) -> Tensor:
        """Return minus the logarithm of the prior up to a constant."""
