"""Networks: how a model is made for a shape and a number of classes."""

from __future__ import annotations

import abc
from typing import ClassVar, final

from torch import nn

from leaktight.core.errors import InvalidValue
from leaktight.core.random import sealed
from leaktight.core.task import Model, Normalise
from leaktight.core.value import Kinded
from leaktight.data.columns import Columns


class Network(Kinded):
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
                f"{self.kind} takes numbers. Got ids in the column `{name}` instead; use `wide_deep`, or read words as `one_hot`."
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
            raise InvalidValue(f"The shape of an example for {self.kind} must have positive sizes. Got {tuple(shape)} instead.")
        if classes < 2:
            raise InvalidValue(f"The number of classes for {self.kind} must be at least 2. Got {classes} instead.")
        with sealed(seed):
            body, head = self.parts(tuple(shape), classes)
        return Model(body, head, Normalise(*statistics) if statistics else None)

    def image(self, shape: tuple[int, ...], smallest: int) -> tuple[int, int, int]:
        """Return (channels, height, width), or raise the error for examples that are not images of at least this size."""
        if len(shape) != 3:
            raise InvalidValue(
                f"{self.kind} needs images of shape (channels, height, width). Got shape {shape} instead; `mlp` takes any shape."
            )
        channels, height, width = shape
        if min(height, width) < smallest:
            raise InvalidValue(
                f"{self.kind} needs images of at least {smallest}x{smallest} pixels. "
                f"Got {height}x{width} instead; enlarge them, or use `mlp`, which takes any shape."
            )
        return channels, height, width
