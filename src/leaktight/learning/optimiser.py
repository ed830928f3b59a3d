"""Optimisers for parties and servers: settings here, the steps are torch's own."""

from __future__ import annotations

import abc
import copy
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from leaktight.core.local import Memory
from leaktight.core.value import Registered

# Left out where there is none, so that settings of before it was there keep their keys.
WEIGHT_DECAY: Any = Field(0.0, ge=0, exclude_if=lambda decay: decay == 0)


class Optimiser(Registered):
    """How parameters follow gradients."""

    family: ClassVar[str] = "optimiser"
    learning_rate: float = Field(0.1, gt=0)

    @abc.abstractmethod
    def over(self, tensors: Iterable[Tensor]) -> torch.optim.Optimizer:
        """Return a torch optimiser over these leaf tensors."""

    def at(self, round: int) -> Optimiser:
        """Return the optimiser of one round; the same in all unless its settings change over a training run."""
        return self

    def facts(self) -> dict[str, float]:
        """Return what goes along with an update: whoever knows the protocol knows how a step is taken."""
        facts = {name: value for name, value in dict(self).items() if isinstance(value, float)}
        return {name: value for name, value in facts.items() if value or name != "weight_decay"}


class Sgd(Optimiser):
    """Stochastic gradient descent.

    Args:
        learning_rate: the step size, above 0.
        momentum: how much of the last step is kept, in [0, 1).
        weight_decay: how much of the parameters is added to each gradient, at least 0.
    """

    kind: Literal["sgd"] = "sgd"
    momentum: float = Field(0.0, ge=0, lt=1)
    weight_decay: float = WEIGHT_DECAY

    def over(self, tensors: Iterable[Tensor]) -> torch.optim.Optimizer:
        """Return torch's SGD."""
        return torch.optim.SGD(tensors, lr=self.learning_rate, momentum=self.momentum, weight_decay=self.weight_decay)


class DecayedSgd(Optimiser):
    """Stochastic gradient descent whose steps become shorter after some rounds.

    The participants take these steps, and under `fedsgd` the server does.

    Args:
        learning_rate: the first step size, above 0.
        momentum: how much of the last step is kept, in [0, 1).
        factor: what the step size is multiplied by after each of `rounds`, in (0, 1).
        rounds: after how many rounds.
        weight_decay: how much of the parameters is added to each gradient, at least 0.

    Example:
        >>> DecayedSgd(learning_rate=0.1, rounds=(100, 200)).at(100)
        Sgd(kind='sgd', learning_rate=0.05, momentum=0.0, weight_decay=0.0)
    """

    kind: Literal["decayed_sgd"] = "decayed_sgd"
    momentum: float = Field(0.0, ge=0, lt=1)
    factor: float = Field(0.5, gt=0, lt=1)
    rounds: tuple[int, ...] = (100, 200)
    weight_decay: float = WEIGHT_DECAY

    def at(self, round: int) -> Sgd:
        """Return plain SGD with the step size of a round, counted from 0."""
        passed = sum(round >= after for after in self.rounds)
        return Sgd(
            learning_rate=self.learning_rate * self.factor**passed,
            momentum=self.momentum,
            weight_decay=self.weight_decay,
        )

    def over(self, tensors: Iterable[Tensor]) -> torch.optim.Optimizer:
        """Return torch's SGD as it is at the start."""
        return self.at(0).over(tensors)


class Adam(Optimiser):
    """Adam with torch's default moments (0.9, 0.999).

    Args:
        learning_rate: the step size, above 0.
    """

    kind: Literal["adam"] = "adam"
    learning_rate: float = Field(0.001, gt=0)

    def over(self, tensors: Iterable[Tensor]) -> torch.optim.Optimizer:
        """Return torch's Adam."""
        return torch.optim.Adam(tensors, lr=self.learning_rate)

    def facts(self) -> dict[str, float]:
        """Say that steps are scaled by moments."""
        return {**super().facts(), "adaptive": 1.0}


def take_moments(steps: torch.optim.Optimizer, leaves: Mapping[str, Tensor]) -> Memory:
    """Return what an optimiser remembers of each parameter, by name.

    Example:
        >>> weight = torch.zeros(2, requires_grad=True)
        >>> steps = Adam().over([weight])
        >>> weight.sum().backward(), steps.step()
        (None, None)
        >>> sorted(take_moments(steps, {"weight": weight})["weight"])
        ['exp_avg', 'exp_avg_sq', 'step']
    """
    return {
        name: {key: value.detach().clone() for key, value in steps.state[leaf].items() if isinstance(value, Tensor)}
        for name, leaf in leaves.items()
        if leaf in steps.state
    }


def restore_moments(steps: torch.optim.Optimizer, leaves: Mapping[str, Tensor], memory: Memory) -> None:
    """Undo `take_moments`; parameters of which nothing is remembered start anew."""
    for name, moments in memory.items():
        steps.state[leaves[name]] = copy.deepcopy(moments)
