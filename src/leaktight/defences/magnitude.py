"""Which entries are the largest: exactly as many as asked for, ties included."""

from __future__ import annotations

import math
from fractions import Fraction

import torch
from torch import Tensor


def whole_part(share: float, n: int, *, up: bool) -> int:
    """Return a share of n things as a whole number, rounded up or down.

    The share counts as the decimal number that it prints as: 0.1 of 30 is 3, although 0.1 * 30 in floating point is
    not.

    Example:
        >>> whole_part(0.1, 30, up=True), whole_part(0.25, 10, up=True), whole_part(0.25, 10, up=False)
        (3, 3, 2)
    """
    exact = Fraction(repr(share)) * n
    return math.ceil(exact) if up else math.floor(exact)


def largest(magnitudes: Tensor, keep: int) -> Tensor:
    """Return a mask of the `keep` largest entries; of equal entries at the edge the first ones stay.

    Args:
        magnitudes: one row of finite numbers.
        keep: how many to keep, from 0 to all of them.

    Example:
        >>> largest(torch.tensor([1.0, 3.0, 1.0, 1.0]), 2)
        tensor([ True,  True, False, False])
    """
    if keep == 0:
        return torch.zeros_like(magnitudes, dtype=torch.bool)
    edge = torch.topk(magnitudes, keep, sorted=False).values.min()
    above, level = magnitudes > edge, magnitudes == edge
    return above | (level & (level.cumsum(0) <= keep - above.sum()))
