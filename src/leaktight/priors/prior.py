"""Priors: what an attacker believes about examples before it sees a message, and the coordinates of its search."""

from __future__ import annotations

import abc
from typing import ClassVar

import torch
from torch import Tensor, nn

from leaktight.core.task import Batch
from leaktight.core.value import Registered


class Coordinates(abc.ABC):
    """What a search moves in place of pixels or columns: a vector of numbers for each example.

    A prior owns its coordinates because they do half of its work: where a step of one length is as likely in every
    direction, a search needs far fewer of them. `decode` and `penalty` are differentiable and fit for `torch.func` and
    for tracing.

    Args:
        shape: the shape of one example's inputs.
    """

    whitened: ClassVar[bool] = False
    r"""Whether the prior is \(z \sim N(0, I)\) in these coordinates, so that standard normal numbers draw from it."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape

    @property
    @abc.abstractmethod
    def width(self) -> int:
        """How many numbers stand for one example."""

    def steps(self) -> Tensor:
        """Return how far a search should move along each coordinate, (width,): z is this times what it searches.

        Where a message says far more than the prior, coordinates in which the prior is round are too long in the
        directions that it leaves open.
        """
        return torch.ones(self.width)

    @abc.abstractmethod
    def decode(self, z: Tensor, targets: Tensor) -> Tensor:
        """Return the examples at these coordinates, (examples, *shape) in natural units: pixels are about in [0, 1].

        Args:
            z: coordinates, (examples, width).
            targets: label probabilities, (examples, classes).
        """

    @abc.abstractmethod
    def encode(self, inputs: Tensor, targets: Tensor) -> Tensor:
        """Return the coordinates of examples, (examples, width): the inverse of `decode`.

        Args:
            inputs: examples in natural units, (examples, *shape).
            targets: label probabilities, (examples, classes).
        """

    @abc.abstractmethod
    def penalty(self, z: Tensor, inputs: Tensor) -> Tensor:
        """Return minus the logarithm of the prior of some examples together, up to a constant: a scalar.

        Args:
            z: coordinates, (examples, width).
            inputs: what they decode to, (examples, *shape).
        """


class Whitened(Coordinates):
    """Coordinates in which the prior is the standard normal law."""

    whitened: ClassVar[bool] = True

    def penalty(self, z: Tensor, inputs: Tensor) -> Tensor:
        """Return half the squared length of the coordinates."""
        return 0.5 * z.square().sum()


class Prior(Registered):
    """What examples look like, to somebody who has not seen a message yet.

    Write `coordinates`. A prior is public: it may use the shape of examples, how the network scales them, and public
    examples where the threat model grants some, and nothing else.
    """

    family: ClassVar[str] = "prior"

    @property
    def needs_public(self) -> bool:
        """Whether it can do nothing without public examples."""
        return False

    @abc.abstractmethod
    def coordinates(
        self, shape: tuple[int, ...], normalise: nn.Module, public: Batch | None, classes: int
    ) -> Coordinates:
        """Return the coordinates to search examples of one task in.

        Args:
            shape: the shape of one example's inputs.
            normalise: what the network does to its inputs first.
            public: public examples; None if there are none.
            classes: how many classes there are.
        """
