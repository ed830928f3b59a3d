"""Sources: where examples come from."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Hashable
from typing import ClassVar, final

import torch
from torch import Tensor

from leaktight.core.errors import InvalidValue
from leaktight.core.task import Batch
from leaktight.core.value import Registered
from leaktight.data.columns import Columns

Constants = tuple[tuple[float, ...], tuple[float, ...]]
"""What is subtracted from each channel of an input, and what the rest is divided by."""


@dataclasses.dataclass(frozen=True)
class Data:
    """A data set, split for training and for testing.

    Args:
        train: what the participants own between them.
        test: what nobody trains on, and what is public: utility, normalisation, chance levels and auxiliary data come
            from here.
        classes: how many classes there are.
        names: what the classes are called, if known.
        columns: for a table, what each position of a row holds; None means numbers, and for images nothing at all.
        property_name: what the private property of the examples is called; empty if they have none.
        constants: by what a task shifts and scales the channels of its inputs; None takes each one's mean and deviation
            over the test examples.
    """

    train: Batch
    test: Batch
    classes: int
    names: tuple[str, ...] = ()
    columns: Columns | None = None
    property_name: str = ""
    constants: Constants | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one example: (channels, height, width) for images, (columns,) for tables."""
        return tuple(self.train.inputs.shape[1:])

    def statistics(self) -> Constants:
        """Return each channel's mean and standard deviation over the test examples, unless the data state others.

        They are public constants of the task, so they come from the public part of the data. Taken from the training
        examples, they would reveal those outside of every defence and every epsilon. A channel that never varies gets 1
        as its deviation: an example that differs there must not be blown up. Ids of categories are left as they are.
        """
        if self.constants is not None:
            return self.constants
        channels = self.test.inputs.transpose(0, 1).flatten(1).double()
        mean, std = channels.mean(1), channels.std(1, correction=0)
        std = torch.where(std > 1e-6, std, torch.ones_like(std))
        if self.columns is not None:
            ids = torch.tensor(self.columns.ids) > 0
            mean, std = mean.masked_fill(ids, 0), std.masked_fill(ids, 1)
        return tuple(mean.tolist()), tuple(std.tolist())


class Source(Registered):
    """Something that loads a data set. Write `read`; call `load`, which checks what `read` returns."""

    family: ClassVar[str] = "data"
    property_title: ClassVar[str] = ""
    """What the private property is, where it is always the same; empty if settings say it, or if there is none."""

    @abc.abstractmethod
    def read(self) -> Data:
        """Read the data set: inputs of any floating point type, and whole labels from 0.

        Images are in [0, 1], channels first.
        """

    def stamp(self) -> Hashable:
        """Return something that changes when what `read` would return changes although the settings do not."""
        return None

    @final
    def load(self) -> Data:
        """Read the data set, bring it to single precision and long labels, and check it.

        Every cell of an audit loads its data, so the last two data sets are kept as long as settings and stamp stay the
        same. They are shared: nobody may change their tensors in place.
        """
        wanted = (type(self), self.key, self.stamp())
        if wanted not in _last:
            raw = self.read()
            has_property = raw.train.properties is not None or raw.test.properties is not None
            name = raw.property_name or ("the private property" if has_property else "")
            data = dataclasses.replace(raw, train=_cast(raw.train), test=_cast(raw.test), property_name=name)
            self._check(data)
            if len(_last) >= KEPT:
                _last.pop(next(iter(_last)))
            _last[wanted] = data
        return _last[wanted]

    def _check(self, data: Data) -> None:
        if data.classes < 2:
            raise InvalidValue(f"The labels of {self} must name at least 2 classes. Got {data.classes} instead.")
        if data.names and len(data.names) != data.classes:
            raise InvalidValue(
                f"The class names of {self} must be as many as its {data.classes} classes. Got {len(data.names)} "
                "instead."
            )
        for part, batch in (("training", data.train), ("test", data.test)):
            _check(f"The {part} data of {self}", batch, data.classes, data.shape)
            if data.property_name:
                _check_properties(f"The {part} data of {self}", batch)
            if data.columns is not None:
                _check_columns(f"The {part} data of {self}", batch.inputs, data.columns)


KEPT = 2
"""How many data sets are kept: a scenario's, and public data that a defence looks at."""
_last: dict[Hashable, Data] = {}


def _cast(batch: Batch) -> Batch:
    """Return floating point inputs and whole labels as what networks and losses take.

    Anything else is left to the check.
    """
    inputs, labels = batch.inputs, batch.labels
    return Batch(
        inputs.float() if inputs.is_floating_point() else inputs,
        labels.long() if _whole(labels) else labels,
        None if batch.properties is None else _flags(batch.properties),
    )


def _flags(properties: Tensor) -> Tensor:
    """Return zeros and ones as whole numbers; anything else is left to the check."""
    return properties.long() if ((properties == 0) | (properties == 1)).all() else properties


def _whole(labels: Tensor) -> bool:
    return not (labels.is_floating_point() or labels.is_complex() or labels.dtype == torch.bool)


def _check(what: str, batch: Batch, classes: int, shape: tuple[int, ...]) -> None:
    inputs, labels = batch.inputs, batch.labels
    if inputs.dim() == 0 or labels.dim() != 1 or len(inputs) != len(labels):
        raise InvalidValue(
            f"{what} must have one label for each example. Got examples of shape {tuple(inputs.shape)} and labels of "
            f"shape {tuple(labels.shape)} instead."
        )
    if len(batch) == 0:
        raise InvalidValue(f"{what} must hold at least one example. Got none instead.")
    if len(shape) not in (1, 3) or 0 in shape:
        raise InvalidValue(
            f"{what} must have examples of shape (channels, height, width) or (columns,). Got "
            f"{tuple(inputs.shape[1:])} instead."
        )
    if tuple(inputs.shape[1:]) != shape:
        raise InvalidValue(f"{what} must have examples of shape {shape}. Got {tuple(inputs.shape[1:])} instead.")
    if not inputs.is_floating_point():
        raise InvalidValue(f"{what} must be floating point numbers. Got {inputs.dtype} instead.")
    if not torch.isfinite(inputs).all():
        raise InvalidValue(
            f"{what} must be finite numbers. Got NaN or infinite values in {_bad(inputs)} examples; remove or fill "
            "them."
        )
    if len(shape) == 3 and (inputs.min() < 0 or inputs.max() > 1):
        low, high = inputs.min().item(), inputs.max().item()
        raise InvalidValue(
            f"{what} must have pixels in [0, 1]. Got {low:.3g} to {high:.3g} instead; normalisation is done by the "
            "task."
        )
    if not _whole(labels):
        raise InvalidValue(f"{what} must have whole numbers as labels. Got {labels.dtype} instead.")
    if labels.min() < 0 or labels.max() >= classes:
        low, high = labels.min().item(), labels.max().item()
        raise InvalidValue(
            f"{what} must have whole labels from 0 to {classes - 1}. Got labels from {low} to {high} instead."
        )


def _check_properties(what: str, batch: Batch) -> None:
    flags = batch.properties
    if flags is None or flags.shape != batch.labels.shape or ((flags != 0) & (flags != 1)).any():
        raise InvalidValue(
            f"{what} must have a property of 0 or 1 for each example. It does not; fill or drop the others."
        )
    if flags.min() == flags.max():
        raise InvalidValue(
            f"{what} must have examples with and without the property. All are alike; choose another property."
        )


def _check_columns(what: str, inputs: Tensor, columns: Columns) -> None:
    if tuple(inputs.shape[1:]) != (len(columns),):
        raise InvalidValue(
            f"{what} must have rows of the {len(columns)} columns it names. Got rows of shape "
            f"{tuple(inputs.shape[1:])} instead."
        )
    for at in columns.categories:
        cells, ids = inputs[:, at], columns.ids[at]
        if (cells != cells.round()).any() or cells.min() < 0 or cells.max() >= ids:
            raise InvalidValue(
                f"{what} must have whole ids from 0 to {ids - 1} in the column `{columns.names[at]}`. Got others "
                "instead."
            )


def _bad(inputs: Tensor) -> int:
    return int((~torch.isfinite(inputs.flatten(1))).any(1).sum())
