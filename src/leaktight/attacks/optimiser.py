"""Optimisers of a search: how candidates follow their gradients, all rows at once, each row by itself.

A row is one candidate of one victim. Settings are values; what changes during a search lives in an `OptimiserState`.
"""

from __future__ import annotations

import abc
from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from leaktight.core.value import Registered


class OptimiserState(abc.ABC):
    """The state of one search over many rows."""

    recovers: bool = False
    """Whether it goes back where an objective is not finite; else such a row ends."""

    @abc.abstractmethod
    def step(self, points: Tensor, values: Tensor, gradients: Tensor, rate: float) -> tuple[Tensor, Tensor]:
        """Return the next points, and which rows have come to rest.

        Args:
            points: (rows, dimensions).
            values: the objective at the points; infinite where it is not a number.
            gradients: the objective's gradient at the points.
            rate: what the schedule multiplies the learning rate with.
        """

    @abc.abstractmethod
    def keep(self, rows: Tensor) -> None:
        """Forget all rows but these."""

    def revive(self, rows: Tensor, least: float) -> Tensor:
        """Return which rows of those that hardly move any more continue by other means.

        Args:
            rows: which have settled.
            least: how much lower a row's objective must promise to become.
        """
        return torch.zeros_like(rows)


class SearchOptimiser(Registered):
    """How candidates follow their gradients."""

    family: ClassVar[str] = "descent"
    learning_rate: float = Field(0.1, gt=0)

    @property
    def evaluations(self) -> int:
        """How many gradients of the objective one counted iteration takes."""
        return 1

    @property
    def vectors_per_row(self) -> int:
        """How many vectors as long as a point a search keeps for each row."""
        return 2

    @abc.abstractmethod
    def start(self, points: Tensor) -> OptimiserState:
        """Start a search from these points."""


class SearchAdam(SearchOptimiser):
    """Adam with moments (0.9, 0.999).

    Args:
        learning_rate: the step size, above 0.
    """

    kind: Literal["adam"] = "adam"

    def start(self, points: Tensor) -> OptimiserState:
        """Start with moments at zero."""
        return AdamState(points, self.learning_rate)


class SearchSGD(SearchOptimiser):
    """Gradient descent with Nesterov momentum.

    Args:
        learning_rate: the step size, above 0.
        momentum: how much of the last step is kept, in [0, 1).
    """

    kind: Literal["sgd"] = "sgd"
    learning_rate: float = Field(0.01, gt=0)
    momentum: float = Field(0.9, ge=0, lt=1)

    def start(self, points: Tensor) -> OptimiserState:
        """Start at rest."""
        return _SGDState(points, self.learning_rate, self.momentum)


class AdamState(OptimiserState):
    """The moments of each row, and how many steps it has taken."""

    def __init__(self, points: Tensor, learning_rate: float) -> None:
        self.learning_rate = learning_rate
        self.first, self.second = torch.zeros_like(points), torch.zeros_like(points)
        self.steps = torch.zeros(len(points), 1, dtype=torch.long, device=points.device)

    def step(self, points: Tensor, values: Tensor, gradients: Tensor, rate: float) -> tuple[Tensor, Tensor]:
        """Move each row along its mean gradient, each entry by its own scale."""
        self.steps += 1
        self.first.lerp_(gradients, 0.1)
        self.second.mul_(0.999).addcmul_(gradients, gradients, value=0.001)
        # In double: one minus a number close to one.
        first, second = ((1 - decay ** self.steps.double()).to(points.dtype) for decay in (0.9, 0.999))
        scale = (self.second / second).sqrt_().add_(1e-8)
        moved = points - self.learning_rate * rate / first * self.first / scale
        return moved, torch.zeros(len(points), dtype=torch.bool, device=points.device)

    def keep(self, rows: Tensor) -> None:
        """Forget all rows but these."""
        self.first, self.second, self.steps = self.first[rows], self.second[rows], self.steps[rows]

    def begin(self, rows: Tensor) -> None:
        """Let these rows start anew."""
        for each in (self.first, self.second, self.steps):
            each[rows] = 0


class _SGDState(OptimiserState):
    def __init__(self, points: Tensor, learning_rate: float, momentum: float) -> None:
        self.learning_rate, self.momentum = learning_rate, momentum
        self.velocity = torch.zeros_like(points)

    def step(self, points: Tensor, values: Tensor, gradients: Tensor, rate: float) -> tuple[Tensor, Tensor]:
        self.velocity = self.momentum * self.velocity + gradients
        moved = points - self.learning_rate * rate * (gradients + self.momentum * self.velocity)
        return moved, torch.zeros(len(points), dtype=torch.bool, device=points.device)

    def keep(self, rows: Tensor) -> None:
        self.velocity = self.velocity[rows]


def choose(rows: Tensor, one: Tensor, other: Tensor) -> Tensor:
    """Return some rows of one table and the rest of another; where all come from one, that table itself.

    Args:
        rows: which rows come from `one`.
        one: (rows, width).
        other: as large.
    """
    if bool(rows.all()):
        return one
    return torch.where(rows[:, None], one, other) if bool(rows.any()) else other
