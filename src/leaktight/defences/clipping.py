"""Clipping: no example's gradient, and no message, is longer than a bound, in whatever precision it comes."""

from __future__ import annotations

import torch
from torch import Tensor

from leaktight.core.message import Tensors

_MARGIN = 2.0**-16
"""By how much less than the bound a half-precision gradient is clipped to: more than single precision can round up."""
_BITS = {1: torch.int8, 2: torch.int16, 4: torch.int32}
_TERMS = 2**16


def example_norms(tensors: Tensors) -> Tensor:
    """Return the Euclidean norm of each example's gradient over all tensors.

    Example:
        >>> example_norms({"weight": torch.tensor([[3.0], [1e30]]), "bias": torch.tensor([4.0, 0.0])})
        tensor([5.0000e+00, 1.0000e+30])
    """
    peak, unit = _peaks_and_norms(tensors)
    return peak * unit


def clip_each(tensors: Tensors, bound: float) -> dict[str, Tensor]:
    """Return each example's gradient at norm `bound` if it was longer, and untouched if it was not.

    Half precision comes back in single: its rounding alone would exceed the bound by up to 0.0005 of it.

    Args:
        tensors: one gradient for each example along the first dimension, by name.
        bound: the norm over all tensors that no example exceeds, above 0.

    Example:
        >>> clip_each({"weight": torch.tensor([[3.0, 4.0], [0.3, 0.4]])}, 1.0)["weight"]
        tensor([[0.6000, 0.8000],
                [0.3000, 0.4000]])
    """
    if not all(tensor.dtype == _wide(tensor) for tensor in tensors.values()):
        bound = bound * (1 - _MARGIN)
    peak, unit = _peaks_and_norms(tensors)
    long = peak * unit > bound
    clipped = {}
    for name, tensor in tensors.items():
        wide = tensor.to(_wide(tensor))
        clipped[name] = torch.where(_over(long, wide), wide / _over(peak, wide) * _over(bound / unit, wide), wide)
    return clipped


def clip_message(tensors: Tensors, bound: float) -> Tensors:
    """Return a whole message at norm `bound` if it was longer; half precision comes back in single.

    Example:
        >>> clip_message({"weight": torch.tensor([3.0, 4.0])}, 1.0)["weight"]
        tensor([0.6000, 0.8000])
    """
    if not tensors:
        return tensors
    clipped = clip_each({name: tensor[None] for name, tensor in tensors.items()}, bound)
    return {name: tensor[0] for name, tensor in clipped.items()}


def round_to(tensor: Tensor, dtype: torch.dtype) -> Tensor:
    """Return a tensor in another precision, rounded towards zero, so that no norm grows; what overflows is infinite.

    Example:
        >>> round_to(torch.tensor([1.0009, -1.0009]), torch.float16)
        tensor([ 1., -1.], dtype=torch.float16)
    """
    cast = tensor.to(dtype)
    if dtype.itemsize >= tensor.dtype.itemsize:
        return cast
    grown = torch.isfinite(cast) & (cast.to(tensor.dtype).abs() > tensor.abs())
    # The bits of a number without its sign, read as a whole number, grow with it: one less is the next towards zero.
    return torch.where(grown, (cast.view(_BITS[dtype.itemsize]) - 1).view(dtype), cast)


def _peaks_and_norms(tensors: Tensors) -> tuple[Tensor, Tensor]:
    """Return each example's largest magnitude and its norm in units of that, so that no square overflows."""
    first = next(iter(tensors.values()))
    if not len(first):
        return first.new_ones(0, dtype=_wide(first)), first.new_ones(0, dtype=_wide(first))
    flat = [tensor.reshape(len(tensor), -1).to(_wide(tensor)) for tensor in tensors.values()]
    peak = torch.cat([row.abs().amax(1, keepdim=True) for row in flat if row.numel()], 1).amax(1)
    peak = torch.where(peak > 0, peak, 1)
    norms = torch.cat([_norms(row / peak[:, None]) for row in flat], 1)
    return peak, torch.linalg.vector_norm(norms, dim=1)


def _norms(rows: Tensor) -> Tensor:
    # A sum of millions of squares in single precision comes out too small, by a thousandth at thirty millions.
    return torch.stack([torch.linalg.vector_norm(part, dim=1) for part in torch.split(rows, _TERMS, dim=1)], 1)


def _wide(tensor: Tensor) -> torch.dtype:
    return torch.promote_types(tensor.dtype, torch.float32)


def _over(row: Tensor, tensor: Tensor) -> Tensor:
    """Return one number per example, shaped and typed to meet that example's entries."""
    return row.view(-1, *(1,) * (tensor.dim() - 1)).to(row.dtype if row.dtype is torch.bool else tensor.dtype)
