"""Class property: membership of a class as the private property, so that property attacks can be asked about labels."""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable
from typing import Annotated, Literal

from pydantic import Field, SerializeAsAny

from leaktight.core.errors import InvalidValue
from leaktight.core.task import Batch
from leaktight.data.source import Data, Source


class ClassProperty(Source):
    """Another source whose private property is that an example is of one class; the source's own property is ignored.

    With batches of one, an attack on this property is an attack on the label.

    Args:
        data: the source.
        label: the number of the class, from 0; None takes the commonest one of the public part.

    Example:
        >>> from leaktight.data import RareDigit
        >>> found = ClassProperty(data=RareDigit(), label=1).load()
        >>> found.property_name, found.train.properties.sum().item()
        ('8', 139)
    """

    kind: Literal["class_property"] = "class_property"
    data: SerializeAsAny[Source]
    label: Annotated[int, Field(ge=0)] | None = None

    def stamp(self) -> Hashable:
        """Return the stamp of the source."""
        return self.data.stamp()

    def read(self) -> Data:
        """Read the source and mark the class."""
        data = self.data.load()
        label = int(data.test.labels.bincount().argmax()) if self.label is None else self.label
        if label >= data.classes:
            raise InvalidValue(
                f"The `label` of class_property must be from 0 to {data.classes - 1}. Got {label} instead."
            )
        name = data.names[label] if data.names else str(label)
        return dataclasses.replace(
            data, train=_mark(data.train, label), test=_mark(data.test, label), property_name=name
        )


def _mark(batch: Batch, label: int) -> Batch:
    return dataclasses.replace(batch, properties=(batch.labels == label).long())
