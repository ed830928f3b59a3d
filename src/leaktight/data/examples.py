"""Examples: data as a person's own program has them, brought into form.

They come as arrays, as a torch `Dataset`, or as a `DataLoader`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor
from torch.utils.data import (
    ConcatDataset,
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    Subset,
    TensorDataset,
    default_collate,
)

from leaktight.core.errors import InvalidValue, LeaktightError
from leaktight.core.factory import reason_of
from leaktight.core.input_file import GIBIBYTE, in_words
from leaktight.core.random import global_seed
from leaktight.core.task import Batch
from leaktight.data.labels import as_ids
from leaktight.data.pixels import as_inputs
from leaktight.data.selection import holdout
from leaktight.data.source import Data

FORMS = (
    "a pair (inputs, labels) of arrays, a torch Dataset or a DataLoader, two of these for training and test, or a Data"
)
"""What examples may come as."""
TEST_SHARE = 0.2
"""What part of the examples is held out where nobody says which are for testing."""
LARGEST = 4 * GIBIBYTE
"""How many bytes examples may have as single-precision numbers."""


@runtime_checkable
class Array(Protocol):
    """Anything that NumPy can read as an array: a tensor, an array, a table or a column of pandas."""

    def __array__(self) -> NDArray[Any]:
        """Return it as an array."""
        ...


@dataclasses.dataclass(frozen=True)
class Examples:
    """One part of a data set.

    Args:
        batch: inputs as networks take them, and whole labels.
        names: what the classes are called, if the data say so.
    """

    batch: Batch
    names: tuple[str, ...] = ()


def as_data(given: object, whose: str, must: str, classes: int | None = None) -> Data:
    """Return a data set, training and test part, from whatever a person's own program has.

    Of a single part, a share of each class is held out for testing. A `Dataset` or `DataLoader` is read once from its
    first example to its last, with torch's random draws fixed. The `classes` of a `Dataset` are the names of its
    classes.

    Args:
        given: a pair (inputs, labels), a `Dataset` or a `DataLoader`; or two of these, for training and test; or four
            arrays; or a `Data`. Images are whole numbers from 0 to 255 or fractions.
        whose: whose examples they are, for errors, such as "`my.data:load`".
        must: how an error begins about something that is none of these, such as "`my.data:load` must return".
        classes: how many classes there are; None takes as many as are named, or the largest training label plus one.

    Raises:
        InvalidValue: it is nothing of this, or examples and labels do not go together.

    Example:
        >>> data = as_data((torch.rand(10, 1, 8, 8), torch.arange(10) % 2), "mine", "It must be")
        >>> data.shape, data.classes, len(data.train), len(data.test)
        ((1, 8, 8), 2, 8, 2)
    """
    match given:
        case Data() as data:
            return _check_tensors(data, whose)
        case (Array() as a, Array() as b, Array() as c, Array() as d):
            parts: tuple[Any, ...] = (a, b), (c, d)
        case (Array(), Array()) | Dataset() | DataLoader():
            parts = (given,)
        case (train, test) if _is_part(train) and _is_part(test):
            parts = train, test
        case other:
            raise InvalidValue(f"{must} {FORMS}. Got {_describe(other)} instead.")
    with global_seed(0):
        if len(parts) == 2:
            train, test = _read(parts[0], "training ", whose), _read(parts[1], "test ", whose)
        else:
            train, test = _hold_out(_read(parts[0], "", whose))
    highest = int(train.batch.labels.max().item()) if len(train.batch) else 0
    names = train.names if len(train.names) > highest and (classes or len(train.names)) == len(train.names) else ()
    return Data(train.batch, test.batch, classes or len(names) or highest + 1, names)


def _is_part(value: object) -> bool:
    return isinstance(value, Dataset | DataLoader) or (
        isinstance(value, tuple | list) and len(value) == 2 and all(isinstance(each, Array) for each in value)
    )


def _hold_out(whole: Examples) -> tuple[Examples, Examples]:
    train, test = (torch.from_numpy(index) for index in holdout(whole.batch.labels.numpy(), TEST_SHARE))
    return (
        dataclasses.replace(whole, batch=whole.batch.take(train)),
        dataclasses.replace(whole, batch=whole.batch.take(test)),
    )


def _read(part: Any, role: str, whose: str) -> Examples:
    """Return one part of a data set.

    Args:
        part: a pair of arrays, a `Dataset` or a `DataLoader`.
        role: what it is for, with a space behind it; empty if it is all there is.
        whose: whose it is.
    """
    names: tuple[str, ...] = ()
    match part:
        case DataLoader() as loader:
            names = _class_names(loader.dataset)
            plain = _is_plain(loader)
            inputs, labels = _columns(loader.dataset, whose) if plain else _join(_pairs(loader, whose), whose)
        case Dataset() as dataset:
            names = _class_names(dataset)
            inputs, labels = _columns(dataset, whose)
        case (x, y):
            inputs, labels = as_array(x), as_array(y)
    ids = as_ids(labels, f"The {role}labels of {whose}")
    if ids.dtype.kind != "i":
        raise InvalidValue(f"The {role}labels of {whose} must be whole numbers. Got words instead; number them from 0.")
    if inputs.ndim == 0 or len(inputs) != len(ids):
        raise InvalidValue(
            f"The {role}data of {whose} must have one label for each example. Got examples of shape {inputs.shape} and "
            f"labels of shape {labels.shape} instead."
        )
    return Examples(Batch(as_inputs(inputs, f"The {role}inputs of {whose}"), torch.from_numpy(ids)), names)


def _columns(dataset: Any, whose: str) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the inputs and the labels of a dataset."""
    if isinstance(dataset, IterableDataset):
        raise InvalidValue(
            f"The datasets of {whose} must have a length. Got an IterableDataset instead; give a DataLoader of it."
        )
    if isinstance(dataset, TensorDataset) and len(dataset.tensors) == 2 and len(dataset):
        inputs, labels = dataset.tensors
        return as_array(inputs), as_array(labels)
    pairs = _pairs(_items(dataset), whose)
    return _join(((inputs[None], labels[None]) for inputs, labels in pairs), whose)


def _items(dataset: Any) -> Iterator[Any]:
    for position in range(len(dataset)):
        yield dataset[position]


def _pairs(items: Iterable[Any], whose: str) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
    """Return each item as an input and a label, or as batches of them."""
    try:
        for item in items:
            if not isinstance(item, tuple | list) or len(item) != 2:
                raise InvalidValue(
                    f"The datasets of {whose} must hold pairs of input and label. Got {_describe(item)} instead."
                )
            yield as_array(item[0]), as_array(item[1])
    except LeaktightError:
        raise
    # A dataset is a person's own code and may fail in any way.
    except Exception as error:
        raise InvalidValue(f"The examples of {whose} cannot be read: {reason_of(error)}.") from error


def _join(pairs: Iterable[tuple[NDArray[Any], NDArray[Any]]], whose: str) -> tuple[NDArray[Any], NDArray[Any]]:
    """Join batches of inputs and labels."""
    inputs, labels = list[NDArray[Any]](), list[NDArray[Any]]()
    size = 0
    for some_inputs, some_labels in pairs:
        size += 4 * some_inputs.size
        if size > LARGEST:
            raise InvalidValue(
                f"The examples of {whose} must have at most {in_words(LARGEST)} as numbers in memory. Got more; give a "
                "part of them, such as `torch.utils.data.Subset(dataset, range(5000))`."
            )
        first = inputs[0] if inputs else some_inputs
        if some_inputs.shape[1:] != first.shape[1:]:
            raise InvalidValue(
                f"The datasets of {whose} must hold inputs of one shape. Got {first.shape[1:]} and "
                f"{some_inputs.shape[1:]} instead."
            )
        inputs.append(some_inputs)
        labels.append(some_labels)
    if not inputs:
        raise InvalidValue(f"The datasets of {whose} must hold pairs of input and label. Got none instead.")
    if len({array.shape[1:] for array in labels}) > 1:
        raise InvalidValue(f"The datasets of {whose} must hold one label for each input. Got several for some instead.")
    return np.concatenate(inputs), np.concatenate(labels)


def _is_plain(loader: DataLoader[Any]) -> bool:
    """Return whether a loader hands out all examples of its dataset as they are, in whichever order.

    Then they are taken from the dataset itself, in an order that is the same each time.
    """
    dataset: Any = loader.dataset
    sampler: Any = loader.sampler
    return (
        not isinstance(dataset, IterableDataset)
        and loader.batch_size is not None
        and loader.collate_fn is default_collate
        and isinstance(sampler, SequentialSampler | RandomSampler)
        and len(sampler) == len(dataset)
    )


def _class_names(dataset: Any) -> tuple[str, ...]:
    """Return what a dataset calls its classes: its own `classes`, or those of the dataset that it is a part of."""
    if isinstance(dataset, Subset):
        return _class_names(dataset.dataset)
    if isinstance(dataset, ConcatDataset):
        return _class_names(dataset.datasets[0])
    classes = getattr(dataset, "classes", ())
    return tuple(map(str, classes)) if isinstance(classes, list | tuple) else ()


def _check_tensors(data: Data, whose: str) -> Data:
    tensors = [
        part
        for batch in (data.train, data.test)
        for part in (batch.inputs, batch.labels, batch.properties)
        if part is not None
    ]
    if not all(isinstance(part, Tensor) for part in tensors):
        raise InvalidValue(f"The Data of {whose} must hold tensors. Got {_describe(tensors)} instead.")
    return data


def as_array(value: Any) -> NDArray[Any]:
    """Return a tensor, an image, a number or anything like an array as an array."""
    if isinstance(value, Tensor):
        value = value.detach().cpu()
        array: NDArray[Any] = (value.float() if value.dtype == torch.bfloat16 else value).numpy()
        return array
    return np.asarray(value.convert("RGB") if isinstance(value, Image.Image) and value.mode == "P" else value)


def _describe(value: Any) -> str:
    if isinstance(value, tuple | list):
        return f"({', '.join(type(part).__name__ for part in value[:6])}{', ...' if len(value) > 6 else ''})"
    return type(value).__name__
