"""Schedules: which of its examples a participant trains on in a step."""

from __future__ import annotations

import abc
import math
from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from leaktight.core.errors import InvalidValue
from leaktight.core.random import Stream, draw, stream
from leaktight.core.task import Batch
from leaktight.core.value import Registered


class Schedule(Registered):
    """Picks the examples of each step."""

    family: ClassVar[str] = "schedule"

    @abc.abstractmethod
    def positions(self, data: Batch, round: int, step: int, size: int, seed: int, party: str) -> Tensor:
        """Return the positions of a step's examples; they follow from the seed, the party and the step.

        Args:
            data: what the party owns.
            round: which message the step is behind.
            step: which step, counted from the first of the training run.
            size: how many examples.
            seed: the party's.
            party: its name.
        """


class Shuffled(Schedule):
    """Consecutive pieces of the data, shuffled anew in every pass over it."""

    kind: Literal["shuffled"] = "shuffled"

    def positions(self, data: Batch, round: int, step: int, size: int, seed: int, party: str) -> Tensor:
        """Return a piece of the current pass."""
        which, place = divmod(step, len(data) // size)
        order = torch.randperm(len(data), generator=stream(seed, party, "order", which))
        return order[place * size : (place + 1) * size]


class ByProperty(Schedule):
    """Batches with the private property in one of every few rounds, and batches without it in the others.

    Whose photos arrive together often have something in common; this is the victim that an attack on properties looks
    for. Of `every` consecutive rounds one, drawn at random, is on batches of which a `share` has the property. Each
    batch is drawn anew; of a participant with too few of a kind, examples occur twice in a batch. A participant without
    any example of the property never has such a batch.

    Args:
        every: how many rounds to one with the property, at least 2.
        share: which part of that batch has it, in (0, 1]; 1 is a pure batch.
        matched: whether both kinds of batches have labels alike, drawn from all that occur with the property and
            without: then counting labels tells nothing of the property.

    Example:
        >>> data = Batch(torch.zeros(6, 1), torch.zeros(6), torch.tensor([0, 0, 0, 1, 1, 1]))
        >>> pure = ByProperty(every=2)
        >>> sorted(sum(data.take(pure.positions(data, step, step, 2, 0, "a")).properties.tolist()) for step in (0, 1))
        [0, 2]

    Differs from the paper: there every fifth step of the victim has the property, at fixed places.

    References: Melis et al. 2019, Exploiting Unintended Feature Leakage in Collaborative Learning, section 6.
    """

    kind: Literal["by_property"] = "by_property"
    every: int = Field(2, ge=2)
    share: float = Field(1.0, gt=0, le=1)
    # Left out where it is off, so that settings of before it was there keep their keys.
    matched: bool = Field(False, exclude_if=lambda matched: not matched)

    def positions(self, data: Batch, round: int, step: int, size: int, seed: int, party: str) -> Tensor:
        """Return a batch with or without the property."""
        if data.properties is None:
            raise InvalidValue(
                "The schedule `by_property` needs data with a private property. Set `private_property` of the data."
            )
        own, others = (data.properties == 1).nonzero()[:, 0], (data.properties == 0).nonzero()[:, 0]
        block, place = divmod(round, self.every)
        chosen = torch.randint(self.every, (), generator=stream(seed, party, "property", block)).item()
        count = max(1, math.floor(self.share * size + 0.5)) if place == chosen and len(own) else 0
        if not len(others):
            count = size
        rng = stream(seed, party, "batch", step)
        if self.matched:
            return draw_matched(own.cpu(), others.cpu(), data.labels.cpu(), count, size, rng)
        return torch.cat([draw(own.cpu(), count, rng), draw(others.cpu(), size - count, rng)])


def draw_matched(own: Tensor, others: Tensor, labels: Tensor, count: int, size: int, rng: Stream) -> Tensor:
    """Draw a batch whose labels do not depend on how many of its examples have a property.

    Labels are those of examples drawn from both kinds together; a label that only one kind has is left out.

    Args:
        own: the positions of examples with the property.
        others: those of examples without.
        labels: of all examples.
        count: how many of the batch have the property.
        size: of the batch.
        rng: where the draws come from.

    Raises:
        InvalidValue: no label occurs with the property and without.

    Example:
        >>> labels = torch.tensor([0, 1, 0, 1, 2])
        >>> batch = draw_matched(torch.tensor([0, 1]), torch.tensor([2, 3, 4]), labels, 2, 4, stream(0))
        >>> len(batch), 4 in batch, int((batch < 2).sum())
        (4, False, 2)
    """
    common = [label for label in torch.unique(labels[own]).tolist() if (labels[others] == label).any()]
    if not common:
        raise InvalidValue(
            "Batches with matched labels need a label that occurs with the private property and without. There is "
            "none; leave `matched` out, or take another property."
        )
    sides = [[side[labels[side] == label] for label in common] for side in (own, others)]
    # Both kinds count alike, or a rare one would hardly have a say in the labels.
    shares = torch.tensor(
        [[len(part) / len(side) for part in parts] for parts, side in zip(sides, (own, others), strict=True)]
    )
    wanted = torch.multinomial(shares.sum(0), size, replacement=True, generator=rng)
    drawn = []
    for parts, places in ((sides[0], wanted[:count]), (sides[1], wanted[count:])):
        drawn += [draw(part, int((places == at).sum()), rng) for at, part in enumerate(parts)]
    return torch.cat(drawn)
