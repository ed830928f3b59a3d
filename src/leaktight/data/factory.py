"""Factories: data from the user's own Python code."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from pydantic import Field
from torch import Tensor
from torch.utils.data import Dataset, IterableDataset

from leaktight.core.errors import InvalidValue
from leaktight.core.factory import Reference, call_object, load_object
from leaktight.core.task import Batch
from leaktight.data.labels import as_ids
from leaktight.data.pixels import as_inputs
from leaktight.data.source import Data, Source


class Factory(Source):
    """Data that a function of the user's own returns; the current folder can be imported from.

    The function takes nothing and returns `(train_inputs, train_labels, test_inputs, test_labels)` as tensors or
    arrays, or two torch datasets of (input, label), or a `Data`. Images are whole numbers from 0 to 255 or fractions in
    [0, 1]. Only a `Data` can tell of a private property: by the `properties` of its batches and its `property_name`.

    Args:
        function: `package.module:function`.
        classes: how many classes there are; None takes the largest training label plus one.

    Example:
        >>> print(Factory(function="my_project.data:load", classes=10))
        factory(function='my_project.data:load', classes=10)
    """

    kind: Literal["factory"] = "factory"
    function: Reference
    classes: Annotated[int, Field(ge=2)] | None = None
    _run: ClassVar[int] = 0

    def read(self) -> Data:
        """Call the function and bring what it returns into form."""
        match call_object(self.function):
            case Data() as data:
                return self._of_tensors(data)
            case (Dataset() as train, Dataset() as test):
                parts = [*self._columns(train), *self._columns(test)]
            case (
                Tensor() | np.ndarray(),
                Tensor() | np.ndarray(),
                Tensor() | np.ndarray(),
                Tensor() | np.ndarray(),
            ) as four:
                parts = [_array(part) for part in four]
            case other:
                raise InvalidValue(
                    f"The function `{self.function}` must return (train_inputs, train_labels, test_inputs, "
                    f"test_labels), two torch datasets or a Data. Got {_describe(other)} instead."
                )
        train_batch, test_batch = self._batch("training", *parts[:2]), self._batch("test", *parts[2:])
        highest = int(train_batch.labels.max().item()) if len(train_batch) else 0
        return Data(train_batch, test_batch, self.classes or highest + 1)

    def stamp(self) -> Hashable:
        """Return the function itself and the run.

        A module that was reloaded has another function, and a function may read from anywhere.
        """
        return load_object(self.function), Factory._run

    @classmethod
    def start_run(cls) -> None:
        """Let every function be called again when its data are next asked for.

        What it reads may have changed since the last run.
        """
        Factory._run += 1

    def _batch(self, name: str, inputs: NDArray[Any], labels: NDArray[Any]) -> Batch:
        ids = as_ids(labels, f"The {name} labels of `{self.function}`")
        if ids.dtype.kind != "i":
            raise InvalidValue(f"The {name} labels of `{self.function}` must be whole numbers. Got words instead.")
        return Batch(as_inputs(inputs, f"The {name} inputs of `{self.function}`"), torch.from_numpy(ids))

    def _columns(self, dataset: Any) -> tuple[NDArray[Any], NDArray[Any]]:
        if isinstance(dataset, IterableDataset):
            raise InvalidValue(f"The datasets of `{self.function}` must have a length. Got an IterableDataset instead.")
        items = [dataset[position] for position in range(len(dataset))]
        odd = next((item for item in items if not isinstance(item, (tuple, list)) or len(item) != 2), None)
        if odd is not None or not items:
            got = "none" if odd is None else _describe(odd)
            raise InvalidValue(
                f"The datasets of `{self.function}` must hold pairs of input and label. Got {got} instead."
            )
        inputs = [_array(value) for value, _ in items]
        shapes = sorted({value.shape for value in inputs})
        if len(shapes) > 1:
            raise InvalidValue(
                f"The datasets of `{self.function}` must hold inputs of one shape. Got {shapes[0]} and {shapes[1]} "
                "instead."
            )
        return np.stack(inputs), np.array([int(label) for _, label in items])

    def _of_tensors(self, data: Data) -> Data:
        batches = (data.train, data.test)
        tensors = [
            part for batch in batches for part in (batch.inputs, batch.labels, batch.properties) if part is not None
        ]
        if not all(isinstance(part, Tensor) for part in tensors):
            raise InvalidValue(
                f"The Data that `{self.function}` returns must hold tensors. Got {_describe(tensors)} instead."
            )
        return data


def _array(value: Any) -> NDArray[Any]:
    if isinstance(value, Tensor):
        value = value.detach().cpu()
        array: NDArray[Any] = (value.float() if value.dtype == torch.bfloat16 else value).numpy()
        return array
    return np.asarray(value.convert("RGB") if isinstance(value, Image.Image) and value.mode == "P" else value)


def _describe(value: Any) -> str:
    if isinstance(value, (tuple, list)):
        return f"({', '.join(type(part).__name__ for part in value[:6])}{', ...' if len(value) > 6 else ''})"
    return type(value).__name__
