"""Channels: what anyone who knows a defence can say of a message, given what a candidate would have sent without it.

A defence is public, so an attacker knows how messages come about. What it does to examples, to gradients and to
messages is stated here once, and everything that searches takes its objective from it. What is random stays random: a
channel says the law, never a draw.
"""

from __future__ import annotations

import abc
import dataclasses
import itertools
from collections.abc import Callable, Mapping
from typing import Any

from torch import Tensor

Scale = float | Tensor
"""A number for a whole tensor, or something that broadcasts over its entries."""

MOST_OUTCOMES = 64
"""How many outcomes an attacker looks at; of more, the most likely."""


@dataclasses.dataclass(frozen=True, eq=False)
class Outcome:
    """One thing that may become of an example before it is trained on.

    Args:
        weight: its probability.
        change: (n, *shape) to the same, differentiable, fit for `torch.func`. Images are expected in [0, 1].
        name: what it is called.
    """

    weight: float
    change: Callable[[Tensor], Tensor] = dataclasses.field(repr=False)
    name: str


@dataclasses.dataclass(frozen=True)
class Noise:
    """The law of independent noise of mean zero on the entries of a tensor.

    It has a Gaussian part, a Laplace part, and a part along a direction.

    Args:
        variance: of the Gaussian part.
        laplace: the scale of the Laplace part.
        along: the standard deviation of Gaussian noise along one direction in each row, times that direction, in the
            shape of the tensor: its row is added times one standard normal number. None if there is none.
        approximate: whether the real law is another of the same variance.
    """

    variance: Scale = 0.0
    laplace: Scale = 0.0
    along: Tensor | None = None
    approximate: bool = False

    @property
    def is_none(self) -> bool:
        """Whether there is no noise at all."""
        parts = (self.variance, self.laplace)
        return self.along is None and all(not isinstance(part, Tensor) and part == 0 for part in parts)

    def scale(self, factor: Scale) -> Noise:
        """Return the law of so many times this noise."""
        along = None if self.along is None else self.along * factor
        size = factor.abs() if isinstance(factor, Tensor) else abs(factor)
        # A part that is not there stays a plain zero, so that laws need not look at the values of tensors.
        variance = 0.0 if is_zero(self.variance) else self.variance * factor**2
        return Noise(variance, 0.0 if is_zero(self.laplace) else self.laplace * size, along, self.approximate)

    def as_gaussian(self) -> Noise:
        """Return the Gaussian law of the same variance for all but the part along a direction."""
        return self if is_zero(self.laplace) else Noise(self.variance + 2 * self.laplace**2, 0.0, self.along, True)

    def __add__(self, other: Noise) -> Noise:
        """Return the law of the sum with independent noise.

        If both are Laplace, the other is treated as a Gaussian of the same variance.
        """
        if self.along is not None and other.along is not None:
            raise NotImplementedError("The sum of two noises that each lie along a direction is not stated.")
        both = not is_zero(self.laplace) and not is_zero(other.laplace)
        variance = self.variance + other.variance + (2 * other.laplace**2 if both else 0.0)
        laplace = self.laplace if both else self.laplace + other.laplace
        along = self.along if other.along is None else other.along
        return Noise(variance, laplace, along, self.approximate or other.approximate or both)


@dataclasses.dataclass(frozen=True)
class Mask:
    """A choice of entries by magnitude: of some tensors together only the largest go out, the others as zero.

    Args:
        group: the tensors that are ranked together.
        count: how many of their entries go out; 0 if nobody can say, as where some of the tensors are kept back.
        ranked: the noise in what is ranked; with a mask before it, the noise after that one.
        sent: noise that the entries which go out get beyond that.
        edge: the smallest magnitude that goes out for the candidate itself, under a typical draw of the noise.
        before: an earlier mask, of which this one ranks what it left.
    """

    group: tuple[str, ...]
    count: int
    ranked: Noise = Noise()
    sent: Noise = Noise()
    edge: Scale = 0.0
    before: Mask | None = None

    def scale(self, factor: Scale) -> Mask:
        """Return the mask of a message that is so many times as large."""
        before = None if self.before is None else self.before.scale(factor)
        size = factor.abs() if isinstance(factor, Tensor) else abs(factor)
        return dataclasses.replace(
            self, ranked=self.ranked.scale(factor), sent=self.sent.scale(factor), edge=self.edge * size, before=before
        )


@dataclasses.dataclass(frozen=True)
class Belief:
    """What is known of named tensors before they are seen: each entry's mean, and the law of what is random around it.

    Args:
        means: what a candidate would have sent so far, by name; differentiable in the candidate.
        noise: the law of the noise on every entry of a tensor, by name; where a mask is, of what came after the mask.
        masks: which entries went out, by the name of the tensor; none if all did.
        examples: how many examples the tensors are a mean over.
    """

    means: Mapping[str, Tensor]
    noise: Mapping[str, Noise] = dataclasses.field(default_factory=dict)
    masks: Mapping[str, Mask] = dataclasses.field(default_factory=dict)
    examples: int = 1

    def noise_of(self, name: str) -> Noise:
        """Return the law of the noise on one tensor."""
        return self.noise.get(name, Noise())

    def map_noise(self, change: Callable[[Noise], Noise]) -> Belief:
        """Return the same belief with the noise on every tensor changed."""
        return dataclasses.replace(self, noise={name: change(self.noise_of(name)) for name in self.means})

    def only(self, names: Any) -> Belief:
        """Return what is known of these tensors."""
        return dataclasses.replace(
            self,
            means={name: mean for name, mean in self.means.items() if name in names},
            noise={name: noise for name, noise in self.noise.items() if name in names},
            masks={name: mask for name, mask in self.masks.items() if name in names},
        )


class Stage(abc.ABC):
    """One thing that a defence does to the tensors of a gradient or a message.

    Anybody who knows the defence can state it.

    It must be fit for `torch.func` and for tracing: no `.item()`, no branch on the value of a tensor.
    """

    @abc.abstractmethod
    def push(self, belief: Belief) -> Belief:
        """Return what is known of the tensors after it, from what is known before."""


@dataclasses.dataclass(frozen=True)
class Channel:
    """How a message comes about under a defence, moment by moment.

    Args:
        outcomes: what may become of each example before a step, drawn for each example by itself; none if examples
            stay as they are.
        lasting: whether the outcome of each example is drawn once, and is the same in all messages of its sender.
        private_task: whether the sender trains on a task of its own, made by `on_task` from secrets that it keeps over
            all messages.
        example: what is done to each example's own gradient, in order.
        step: what is done to the mean gradient of each local step, in order.
        message: what is done to the message, in order.
        complete: whether this is all that the defence does. A defence that states nothing is attacked as if it were
            off.
    """

    outcomes: tuple[Outcome, ...] = ()
    lasting: bool = False
    private_task: bool = False
    example: tuple[Stage, ...] = ()
    step: tuple[Stage, ...] = ()
    message: tuple[Stage, ...] = ()
    complete: bool = True

    def then(self, later: Channel) -> Channel:
        """Return the channel of a defence with this channel followed by one with another.

        The outcomes of both are drawn independently; of more than 64 combinations the likeliest are kept.
        """
        pairs = [_in_turn(*pair) for pair in itertools.product(self.outcomes, later.outcomes)]
        # What is drawn anew in a part is new in the whole.
        drawn = [channel.lasting for channel in (self, later) if channel.outcomes]
        likely = tuple(sorted(pairs, key=lambda outcome: -outcome.weight)[:MOST_OUTCOMES])
        return Channel(
            outcomes=likely or self.outcomes or later.outcomes,
            lasting=any(drawn) and all(drawn),
            private_task=self.private_task or later.private_task,
            example=self.example + later.example,
            step=self.step + later.step,
            message=self.message + later.message,
            complete=self.complete and later.complete and len(likely) == len(pairs),
        )


def push_all(stages: tuple[Stage, ...], belief: Belief) -> Belief:
    """Return what is known after several stages, one after the other."""
    for stage in stages:
        belief = stage.push(belief)
    return belief


def _in_turn(first: Outcome, second: Outcome) -> Outcome:
    name = f"{first.name}, {second.name}"
    return Outcome(first.weight * second.weight, lambda pixels: second.change(first.change(pixels)), name)


def is_zero(scale: Scale) -> bool:
    """Return whether a part of the noise is not there; a tensor is, whatever it holds."""
    return not isinstance(scale, Tensor) and scale == 0
