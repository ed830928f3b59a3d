"""Networks: how a model is made for a shape and a number of classes."""

from __future__ import annotations

import abc
import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, final

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from leaktight.core.errors import InvalidValue
from leaktight.core.random import global_seed
from leaktight.core.task import Model, Normalise
from leaktight.core.value import Registered
from leaktight.data.columns import Columns

MOST_PARAMETERS = 500_000_000
"""How many parameters a network may have, two gigabytes in single precision.

Its size follows from examples that others may have written.
"""
_SMALL = 1 << 20


class _Undrawn(TorchFunctionMode):
    """Initial weights are not drawn: without memory there is nothing to draw.

    To draw, torch would load a large part of itself.
    """

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Leave a tensor as it is where it would be filled, and make one of given numbers as ever."""
        if func in _FILLS or getattr(func, "__module__", "") == nn.init.__name__:
            return args[0] if args else kwargs["tensor"]
        return func(*args, **{**({"device": "cpu"} if func is torch.tensor else {}), **(kwargs or {})})


_FILLS = {Tensor.normal_, Tensor.uniform_, Tensor.zero_, Tensor.fill_}


@contextmanager
def weightless() -> Iterator[None]:
    """Build modules on torch's `meta` device inside the block: with shapes and without memory."""
    with global_seed(0), torch.device("meta"), _Undrawn():
        yield


class Network(Registered):
    """A recipe for a model as body + head. Write `parts`; call `build`."""

    family: ClassVar[str] = "model"

    @abc.abstractmethod
    def parts(self, shape: tuple[int, ...], classes: int) -> tuple[nn.Module, nn.Module]:
        """Return a new body and head for inputs of this shape; raise `InvalidValue` for a shape that does not fit."""

    def of_columns(self, columns: Columns, classes: int) -> tuple[nn.Module, nn.Module]:
        """Return a new body and head for rows of these columns; a network without embeddings takes numbers only."""
        if columns.categories:
            name = columns.names[columns.categories[0]]
            raise InvalidValue(
                f"{self.kind} takes numbers. Got ids in the column `{name}` instead; use `wide_deep`, or read words "
                "as `one_hot`."
            )
        return self.parts((len(columns),), classes)

    @final
    def build(
        self,
        shape: tuple[int, ...],
        classes: int,
        seed: int,
        statistics: tuple[tuple[float, ...], tuple[float, ...]] | None = None,
    ) -> Model:
        """Return the model with initial weights that follow from the seed alone.

        Args:
            shape: the shape of one example.
            classes: how many outputs the head has; at least 2.
            seed: what the initial weights derive from.
            statistics: each channel's mean and standard deviation; None leaves inputs as they are.
        """
        if not shape or min(shape) < 1:
            raise InvalidValue(
                f"The shape of an example for {self.kind} must have positive sizes. Got {tuple(shape)} instead."
            )
        if classes < 2:
            raise InvalidValue(f"The number of classes for {self.kind} must be at least 2. Got {classes} instead.")
        self._check_size(tuple(shape), classes)
        with global_seed(seed):
            body, head = self.parts(tuple(shape), classes)
        return Model(body, head, Normalise(*statistics) if statistics else None)

    def size(self, inputs: Columns | tuple[int, ...], classes: int) -> int | None:
        """Return how many parameters a model would have; None if that cannot be known without building it.

        It is built on torch's `meta` device, so nothing is allocated.

        Args:
            inputs: what the rows hold, or the shape of one example.
            classes: how many outputs the head has.

        Example:
            >>> from leaktight.models.mlp import MLP
            >>> MLP(hidden=(128,)).size((100, 316, 316), classes=2)
            1278157186
        """
        with weightless():
            parts = self.of_columns(inputs, classes) if isinstance(inputs, Columns) else self.parts(inputs, classes)
        return sum(parameter.numel() for part in parts for parameter in part.parameters())

    def _check_size(self, shape: tuple[int, ...], classes: int) -> None:
        # Small examples make no network that matters.
        if math.prod(shape) * classes <= _SMALL:
            return
        size = self.size(shape, classes)
        if size is not None and size > MOST_PARAMETERS:
            raise InvalidValue(
                f"A {self.kind} must have at most {MOST_PARAMETERS} parameters. Examples of shape {shape} and "
                f"{classes} classes make {size}; bring them to a smaller size, or choose another model."
            )

    def image(self, shape: tuple[int, ...], smallest: int) -> tuple[int, int, int]:
        """Return (channels, height, width), or raise if the examples are not images of at least this size."""
        if len(shape) != 3:
            raise InvalidValue(
                f"{self.kind} needs images of shape (channels, height, width). Got shape {shape} instead; `mlp` takes "
                "any shape."
            )
        channels, height, width = shape
        if min(height, width) < smallest:
            raise InvalidValue(
                f"{self.kind} needs images of at least {smallest}x{smallest} pixels. "
                f"Got {height}x{width} instead; enlarge them, or use `mlp`, which takes any shape."
            )
        return channels, height, width
