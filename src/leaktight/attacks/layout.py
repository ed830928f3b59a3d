"""Layout: the named unknowns of a search, packed into one vector for each row."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping

import torch
from torch import Tensor


@dataclasses.dataclass(frozen=True)
class Layout:
    """Where in a row's vector each unknown lies: one after the other, in this order.

    Args:
        shapes: the shape of each unknown, by name.

    Example:
        >>> layout = Layout({"pixels": (1, 2), "logits": (3,)})
        >>> {name: part.tolist() for name, part in layout.unpack(torch.arange(5)).items()}
        {'pixels': [[0, 1]], 'logits': [2, 3, 4]}
    """

    shapes: Mapping[str, tuple[int, ...]]

    @property
    def width(self) -> int:
        """How many numbers a row has."""
        return sum(map(math.prod, self.shapes.values()))

    def pack(self, unknowns: Mapping[str, Tensor]) -> Tensor:
        """Return the unknowns (rows, *shape) as vectors (rows, width)."""
        return torch.cat([unknowns[name].reshape(-1, math.prod(shape)) for name, shape in self.shapes.items()], dim=1)

    def unpack(self, points: Tensor) -> dict[str, Tensor]:
        """Return the unknowns by name from vectors with any leading dimensions."""
        parts = torch.split(points, [math.prod(shape) for shape in self.shapes.values()], dim=-1)
        return {
            name: part.reshape((*points.shape[:-1], *shape))
            for (name, shape), part in zip(self.shapes.items(), parts, strict=True)
        }
