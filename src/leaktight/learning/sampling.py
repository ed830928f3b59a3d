"""Poisson sampling: each example is in a batch by a draw of its own, as the accounting of DP-SGD supposes."""

from __future__ import annotations

import torch
from torch import Tensor

from leaktight.core.local import Local


def draw_poisson(count: int, size: int, local: Local) -> Tensor:
    """Return the positions of the examples that are in a batch: each with probability `size` / `count`, independently of the others.

    Args:
        count: how many examples the party owns.
        size: the expected size of the batch, at most `count`. The batch may be larger, or empty.
        local: the party's own; its draws are secret as far as its random stream is.

    Example:
        >>> local = Local("client-0", seed=0)
        >>> draw_poisson(4, 4, local).tolist(), len({len(draw_poisson(100, 10, local)) for _ in range(20)}) > 1
        ([0, 1, 2, 3], True)
    """
    uniforms = local.scope("sampling").draws.uniforms((count,), torch.float64)
    return (uniforms < size / count).nonzero()[:, 0]
