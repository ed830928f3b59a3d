"""Scratch memory: memory for large results on the CPU, in large pages."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

_NUMPY = {torch.float32: np.float32, torch.float64: np.float64}


def scratch(shape: tuple[int, ...], like: Tensor) -> Tensor:
    """Return memory for a result of the type and device of another tensor; its contents are undefined.

    On Linux numpy asks for large pages where torch does not, and to touch fresh small pages takes longer than to fill
    them.

    Example:
        >>> scratch((2, 3), torch.zeros(1, dtype=torch.float64)).dtype
        torch.float64
    """
    if like.device.type != "cpu" or like.dtype not in _NUMPY:
        return like.new_empty(shape)
    return torch.from_numpy(np.empty(shape, _NUMPY[like.dtype]))
