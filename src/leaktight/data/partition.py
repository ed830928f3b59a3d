"""Partitions: which participant owns which examples, and the plain one: everyone owns the same mix of classes."""

from __future__ import annotations

import abc
from typing import ClassVar, Literal, final

import torch
from torch import Tensor

from leaktight.core.errors import InvalidValue, LeaktightError
from leaktight.core.random import Stream
from leaktight.core.value import Registered


class Partition(Registered):
    """A way to deal examples out to participants. Write `deal`; call `split`, which checks what `deal` returns."""

    family: ClassVar[str] = "partition"

    @abc.abstractmethod
    def deal(self, labels: Tensor, parts: int, rng: Stream) -> list[Tensor]:
        """Return the positions that each participant owns, in any order.

        There are at least as many examples as participants.
        """

    @final
    def split(self, labels: Tensor, parts: int, rng: Stream) -> list[Tensor]:
        """Return the positions that each participant owns, ascending: disjoint, none empty, together all.

        Args:
            labels: each example's class.
            parts: how many participants there are, from 1 to the number of examples.
            rng: where the draw comes from.
        """
        if parts < 1 or parts > len(labels):
            raise InvalidValue(
                f"The number of participants must be from 1 to the {len(labels)} examples there are, so that each "
                f"owns one. Got {parts} instead."
            )
        dealt = [positions.sort().values for positions in self.deal(labels.cpu(), parts, rng)]
        whole = torch.cat(dealt).sort().values if dealt else torch.empty(0)
        if len(dealt) != parts or not all(map(len, dealt)) or not torch.equal(whole, torch.arange(len(labels))):
            raise LeaktightError(
                f"{self} must give each of {parts} participants examples of its own, and none away twice. It did not."
            )
        return dealt


def shuffle_by_class(labels: Tensor, rng: Stream) -> dict[int, Tensor]:
    """Return each class's positions in random order, classes ascending.

    Example:
        >>> found = shuffle_by_class(torch.tensor([3, 1, 3]), torch.Generator().manual_seed(0))
        >>> {label: sorted(positions.tolist()) for label, positions in found.items()}
        {1: [1], 3: [0, 2]}
    """
    order = torch.randperm(len(labels), generator=rng)
    return {int(label): order[labels[order] == label] for label in torch.unique(labels)}


class Equal(Partition):
    """Deal each class out like cards: of its n examples, every one of P participants owns floor(n/P) or ceil(n/P).

    The deal resumes where the last class ended, so that the totals differ by one at most as well.

    Example:
        >>> labels = torch.tensor([0, 0, 0, 0, 1, 1, 1, 1])
        >>> [labels[part].tolist() for part in Equal().split(labels, 2, torch.Generator().manual_seed(0))]
        [[0, 0, 1, 1], [0, 0, 1, 1]]
    """

    kind: Literal["equal"] = "equal"

    def deal(self, labels: Tensor, parts: int, rng: Stream) -> list[Tensor]:
        """Deal round and round through the classes."""
        order = torch.cat(list(shuffle_by_class(labels, rng).values()))
        return [order[part::parts] for part in range(parts)]
