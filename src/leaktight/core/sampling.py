"""Sampling: how the examples of a step were chosen, as far as a privacy accountant may rely on it."""

from __future__ import annotations

import dataclasses

from torch import Tensor


@dataclasses.dataclass(frozen=True)
class Poisson:
    """Each example is in the batch with the same probability, independently of all others.

    An observer does not see which are.

    Args:
        rate: that probability, in (0, 1].
        expected: the expected size of the batch.
    """

    rate: float
    expected: float


@dataclasses.dataclass(frozen=True)
class KnownBatch:
    """An observer may know the examples in the batch: a piece of a shuffled pass, or a choice by their properties.

    Args:
        positions: which of the party's examples; one that is in the batch twice is here twice.
        attacked: whether an audit fixed the batch to attack it, outside of any training.
    """

    positions: Tensor = dataclasses.field(repr=False)
    attacked: bool = False


@dataclasses.dataclass(frozen=True)
class Piece:
    """A piece of a pass over the data that takes each example at most once; which ones are in it is unknown.

    Args:
        first: whether a new pass begins with it.
    """

    first: bool


Sampling = Poisson | KnownBatch | Piece
"""Where none of them is told, any example may be in every batch, once."""
