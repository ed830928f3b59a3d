"""By class: everyone owns a few classes only."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Literal, Self

import torch
from pydantic import Field, model_validator
from torch import Tensor

from leaktight.core.errors import InvalidValue
from leaktight.core.random import Stream
from leaktight.data.partition import Partition, shuffle_by_class


class ByClass(Partition):
    """Give each participant `classes_each` classes; a class has a single owner as long as the classes suffice.

    With C classes and P participants, P * classes_each = C means that no two participants share a class. Otherwise a
    class is dealt out evenly among its owners, larger classes have more of them, and no class has more owners than
    examples. On tiny data a participant may therefore own fewer classes than asked, but never nothing.

    Args:
        classes_each: how many classes each participant owns, from 1; at least C / P, as every class needs an owner.
            None deals the classes out evenly: ceil(C / P) or one fewer each. Lower is more skewed.
        owned: the classes of each participant, by their numbers, in place of any choice: they may differ, overlap or be
            equal. A class that several own is dealt out evenly between them; every class needs an owner. Empty leaves
            the choice to chance.

    Example:
        >>> labels = torch.arange(12) % 4
        >>> parts = ByClass(classes_each=2).split(labels, 2, torch.Generator().manual_seed(0))
        >>> [labels[part].unique().numel() for part in parts]
        [2, 2]
        >>> parts = ByClass(owned=((0, 1, 2), (2, 3))).split(labels, 2, torch.Generator().manual_seed(0))
        >>> [labels[part].bincount(minlength=4).tolist() for part in parts]
        [[3, 3, 2, 0], [0, 0, 1, 3]]
    """

    kind: Literal["by_class"] = "by_class"
    classes_each: Annotated[int, Field(ge=1)] | None = None
    # Left out where there is none, so that settings of before it was there keep their keys.
    owned: tuple[tuple[int, ...], ...] = Field((), exclude_if=lambda owned: not owned)

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if self.owned and self.classes_each is not None:
            raise InvalidValue(
                "The `classes_each` of by_class must be left out where `owned` says it. Got both instead."
            )
        for number, classes in enumerate(self.owned):
            if not classes or len(set(classes)) < len(classes):
                raise InvalidValue(
                    "The `owned` of by_class must name at least one class of each participant, and each once. Got "
                    f"{classes} for participant {number} instead."
                )
        return self

    def deal(self, labels: Tensor, parts: int, rng: Stream) -> list[Tensor]:
        """Choose owners for each class, then deal each class out to them."""
        by_label = shuffle_by_class(labels, rng)
        members = list(by_label.values())
        owners = self._owners_by_name(by_label, parts) if self.owned else self._owners_by_chance(members, parts, rng)
        dealt: list[list[Tensor]] = [[] for _ in range(parts)]
        for positions, sharing in zip(members, owners, strict=True):
            for at, owner in enumerate(sharing):
                dealt[owner].append(positions[at :: len(sharing)])
        return [torch.cat(shares) for shares in dealt]

    def _owners_by_name(self, positions: Mapping[int, Tensor], parts: int) -> list[list[int]]:
        """Return the participants that were named as owners of each class."""
        if len(self.owned) != parts:
            raise InvalidValue(
                f"The `owned` of by_class must name the classes of each of {parts} participants. Got "
                f"{len(self.owned)} instead."
            )
        owners = {label: [part for part, classes in enumerate(self.owned) if label in classes] for label in positions}
        strange = sorted({label for classes in self.owned for label in classes} - positions.keys())
        without = [label for label, sharing in owners.items() if not sharing]
        if strange or without:
            fault = f"no example of class {strange[0]}" if strange else f"no owner of class {without[0]}"
            raise InvalidValue(
                f"The `owned` of by_class must give every class of the data to somebody, and no other. Got {fault} "
                "instead."
            )
        for label, sharing in owners.items():
            if len(sharing) > len(positions[label]):
                raise InvalidValue(
                    "The `owned` of by_class must give a class to at most as many participants as it has examples. "
                    f"Got {len(sharing)} for the {len(positions[label])} of class {label} instead."
                )
        return list(owners.values())

    def _owners_by_chance(self, members: Sequence[Tensor], parts: int, rng: Stream) -> list[list[int]]:
        """Return owners of each class by chance."""
        each = self.classes_each or math.ceil(len(members) / parts)
        if each > len(members) or each * parts < len(members):
            raise InvalidValue(
                f"The `classes_each` of by_class must be from {math.ceil(len(members) / parts)} to {len(members)} for "
                f"{parts} participants and {len(members)} classes, as each class needs an owner. Got {each} instead."
            )
        return _owners([len(positions) for positions in members], parts, each, self.classes_each is None, rng)


def _owners(sizes: list[int], parts: int, each: int, once: bool, rng: Stream) -> list[list[int]]:
    """Return the participants that own each class.

    Participants choose in rounds. A class without an owner goes first; then the one whose owners would have most left.
    So after the first round nobody has nothing, and as long as parts * each covers the classes, none stays unowned.

    Args:
        sizes: how many examples each class has.
        parts: how many participants there are.
        each: how many rounds there are.
        once: stop when every class has an owner and every participant a class.
        rng: breaks ties.
    """
    ties = torch.randperm(len(sizes), generator=rng).tolist()
    owners: list[list[int]] = [[] for _ in sizes]
    for turn in range(each):
        for part in range(parts):
            if once and turn > 0 and all(owners):
                return owners
            open_classes = [c for c, size in enumerate(sizes) if part not in owners[c] and len(owners[c]) < size]
            if open_classes:
                best = min(open_classes, key=lambda c: (len(owners[c]) > 0, -sizes[c] / (len(owners[c]) + 1), ties[c]))
                owners[best].append(part)
    return owners
