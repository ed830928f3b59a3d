"""Local steps: how a participant's optimiser turns gradients into an update, differentiable in the gradients."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import torch
from torch import Tensor

from leaktight.core.channel import Noise
from leaktight.core.message import Tensors

Moments = Mapping[str, tuple[Tensor, Tensor]]

_FIRST, _SECOND, _TINY = 0.9, 0.999, 1e-8


@dataclasses.dataclass(frozen=True)
class LocalSteps:
    """The steps behind an update, by their public facts.

    Args:
        count: how many there are.
        learning_rate: the size of each.
        momentum: how much of the last one is kept.
        adaptive: whether they are Adam's, with torch's default moments.
        weight_decay: how much of the parameters is added to each gradient.
    """

    count: int = 1
    learning_rate: float = 1.0
    momentum: float = 0.0
    adaptive: bool = False
    weight_decay: float = 0.0

    @classmethod
    def of(cls, facts: Mapping[str, float]) -> LocalSteps:
        """Read the facts of a message."""
        return cls(
            count=int(facts.get("local_steps", 1)),
            learning_rate=facts.get("learning_rate", 1.0),
            momentum=facts.get("momentum", 0.0),
            adaptive=bool(facts.get("adaptive")),
            weight_decay=facts.get("weight_decay", 0.0),
        )

    @property
    def plain_steps(self) -> float:
        """How many plain steps along one gradient go as far as these.

        Example:
            >>> LocalSteps(3).plain_steps, LocalSteps(2, momentum=0.5).plain_steps
            (3.0, 2.5)
        """
        return float(sum((self.count - lag) * self.momentum**lag for lag in range(self.count)))

    def moments(self, tensors: Tensors) -> Moments:
        """Return the moments before the first step."""
        return {name: (torch.zeros_like(tensor), torch.zeros_like(tensor)) for name, tensor in tensors.items()}

    def decay(self, gradient: Tensors, parameters: Tensors) -> Tensors:
        """Return what a step follows: its gradient, and its share of the parameters.

        Example:
            >>> LocalSteps(weight_decay=0.5).decay({"weight": torch.ones(1)}, {"weight": torch.full((1,), 4.0)})
            {'weight': tensor([3.])}
        """
        if not self.weight_decay:
            return gradient
        return {name: each + self.weight_decay * parameters[name] for name, each in gradient.items()}

    def move(self, gradient: Tensors, moments: Moments, step: int) -> tuple[dict[str, Tensor], Moments]:
        """Return how one step moves each parameter, and the moments after it.

        Args:
            gradient: the gradient of the step.
            moments: those before it.
            step: its number, from 1.
        """
        if not self.adaptive:
            after = {
                name: (self.momentum * moments[name][0] + each, moments[name][1]) for name, each in gradient.items()
            }
            return {name: -self.learning_rate * velocity for name, (velocity, _) in after.items()}, after
        after = {
            name: (
                _FIRST * moments[name][0] + (1 - _FIRST) * each,
                _SECOND * moments[name][1] + (1 - _SECOND) * each.square(),
            )
            for name, each in gradient.items()
        }
        return {name: -self.learning_rate * _adam(*each, step) for name, each in after.items()}, after

    def average_move(self, gradient: Tensors) -> dict[str, Tensor]:
        """Return the whole update, as if all steps had followed one gradient."""
        if not self.adaptive:
            return {name: -self.learning_rate * self.plain_steps * each for name, each in gradient.items()}
        return {name: -self.learning_rate * self.count * _soft_sign(each) for name, each in gradient.items()}

    def split(self, examples: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
        """Return the examples of each step: batches of one size, as a loader makes them, or as even as can be.

        Example:
            >>> [len(batch) for batch in LocalSteps(6).split(torch.zeros(100))]
            [17, 17, 17, 17, 17, 15]
            >>> [len(batch) for batch in LocalSteps(4).split(torch.zeros(9))]
            [3, 2, 2, 2]
        """
        batches = examples.chunk(self.count, dim)
        return batches if len(batches) == self.count else examples.tensor_split(self.count, dim)

    def noise(self, noise: Noise, gradient: Tensor, step: int) -> Noise:
        """Return the law of what noise on one step's gradient adds to the update, as if later steps did not see it.

        Adam divides by the size of what it sees: noise far above the gradient moves a parameter by the learning rate,
        whatever its size. Noise far below a steady gradient moves it less than the law says, which is an approximation
        on the wide side.

        Args:
            noise: on the gradient.
            gradient: without it.
            step: its number, from 1.
        """
        if not self.adaptive:
            return noise.scale(self.learning_rate * sum(self.momentum**lag for lag in range(self.count - step + 1)))
        plain = noise.as_gaussian()
        size = (gradient.square() + plain.variance + _TINY**2).sqrt()
        return dataclasses.replace(plain.scale(self.learning_rate / size), approximate=True)


def _adam(first: Tensor, second: Tensor, step: int) -> Tensor:
    mean, square = first / (1 - _FIRST**step), second / (1 - _SECOND**step)
    # A root has no slope at zero: the tiny number inside moves no step by more than rounding does.
    return mean / ((square + _TINY**2).sqrt() + _TINY)


def _soft_sign(gradient: Tensor) -> Tensor:
    """Return about the sign of each entry: steps of Adam along one gradient all have the size of the learning rate.

    Entries far below the typical one count as less than a whole step, so that a search has a slope to follow.
    """
    return gradient / (gradient.square() + 0.01 * gradient.square().mean().detach() + _TINY**2).sqrt()
