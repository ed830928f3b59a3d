"""Message sketches: a few thousand numbers that tell of a message what the message itself tells, whatever its size."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from leaktight.core.message import Tensors
from leaktight.core.random import stream

WIDTH = 8192
"""How many numbers a sketch of the entries has, and one of their places; of a smaller message they are all kept."""

_TINY = 1e-30


@dataclasses.dataclass(frozen=True)
class Sketch:
    r"""A linear map of a message's direction, and of which of its entries are zero.

    With g all entries of a message, \(m_i = [g_i \neq 0]\), and for every entry i a bucket h(i) and a sign s(i), drawn once,

    .. math:: \Big( \sum_{h(i) = j} s(i) \frac{g_i}{\lVert g \rVert} \Big)_j, \qquad \Big( \sum_{h(i) = j} s(i) \frac{m_i}{\lVert m \rVert} \Big)_j .

    Inner products of sketches are those of the vectors, up to an error of about one over the root of their number. Which entries were sent
    is information of its own: under top-k sharing it is all that is told about most of them.

    Args:
        names: the tensors that are looked at, by wire name.
        seed: what buckets and signs derive from. Entries that are not finite numbers count as zero.
        width: how many buckets there are.

    Example:
        >>> sketch = Sketch(("weight",), seed=0)
        >>> sketch({"weight": torch.tensor([[3.0, 0.0, 4.0, 0.0]])}).tolist()
        [[0.6000000238418579, 0.0, 0.800000011920929, 0.0, 0.7071067690849304, 0.0, 0.7071067690849304, 0.0]]

    References: Charikar, Chen and Farach-Colton, Finding Frequent Items in Data Streams, 2002 (the count sketch).
    """

    names: Sequence[str]
    seed: int
    width: int = WIDTH

    def __call__(self, tensors: Tensors) -> Tensor:
        """Return a row for each message; messages are along the first dimension of every tensor."""
        entries = torch.cat(
            [tensors[name].detach().float().reshape(len(tensors[name]), -1) for name in self.names], 1
        ).nan_to_num(0.0, 0.0, 0.0)
        return torch.cat([self._hash(_unit(entries)), self._hash(_unit((entries != 0).float()))], 1)

    def _hash(self, rows: Tensor) -> Tensor:
        if rows.shape[1] <= self.width:
            return rows
        buckets, signs = _draw(rows.shape[1], self.width, self.seed)
        return rows.new_zeros(len(rows), self.width).index_add_(1, buckets.to(rows.device), rows * signs.to(rows))


@functools.lru_cache(maxsize=1)
def _draw(entries: int, width: int, seed: int) -> tuple[Tensor, Tensor]:
    """Return the bucket and the sign of each entry."""
    rng = stream(seed, "sketch")
    return torch.randint(width, (entries,), generator=rng), 2.0 * torch.randint(2, (entries,), generator=rng) - 1


def _unit(rows: Tensor) -> Tensor:
    # Divided by the largest first: the squares of tiny numbers would vanish.
    scaled = rows / rows.abs().amax(1, keepdim=True).clamp_min(_TINY)
    return F.normalize(scaled, dim=1, eps=_TINY)
