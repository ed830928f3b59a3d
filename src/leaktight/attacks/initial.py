"""Where a search starts."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from leaktight.core.random import Stream

InitialName = Literal["randn", "uniform", "zeros", "pattern"]


def initial(name: InitialName, rows: int, shape: tuple[int, ...], rng: Stream) -> Tensor:
    """Return starting points (rows, *shape) in the units that the network sees.

    `randn` is standard normal, `uniform` lies in [-1, 1), `zeros` is the mean image, `pattern` repeats one small random
    patch over each image (Wei et al. 2020).

    Args:
        name: which kind.
        rows: how many.
        shape: the shape of one.
        rng: where chance comes from.

    Example:
        >>> patch = initial("pattern", 1, (3, 8, 8), torch.Generator().manual_seed(0))
        >>> torch.equal(patch[..., :4, :4], patch[..., 4:, 4:])
        True
    """
    if name == "zeros":
        return torch.zeros(rows, *shape)
    if name == "uniform":
        return 2 * torch.rand(rows, *shape, generator=rng) - 1
    if name == "pattern" and len(shape) >= 2:
        return _pattern(rows, shape, rng)
    return torch.randn(rows, *shape, generator=rng)


def _pattern(rows: int, shape: tuple[int, ...], rng: Stream, side: int = 4) -> Tensor:
    *leading, height, width = shape
    patch = torch.randn(rows, *leading, side, side, generator=rng)
    repeats = [1] * (1 + len(leading)) + [-(-height // side), -(-width // side)]
    return patch.repeat(*repeats)[..., :height, :width]
