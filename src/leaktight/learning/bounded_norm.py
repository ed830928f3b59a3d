"""Bounded norms: how large a change is relative to what changes, comparable between layers of any size."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor

NORMS = ("f", "1", "inf")
"""The norms, in the order of every table: root of the sum of squares, sum and largest of the absolute values."""

_BLOCK = 4096


def totals(pieces: Iterable[Tensor]) -> Tensor:
    """Return sum of squares, sum and largest of the absolute values of each row, over all pieces, in double precision.

    Args:
        pieces: a row's entries, in pieces of any width; one at a time is looked at.

    Example:
        >>> totals([torch.tensor([[3.0, -4.0]]), torch.tensor([[1.0]])]).tolist()
        [[26.0, 8.0, 4.0]]
    """
    return join_totals(_totals(_rows(piece)) for piece in pieces)


def join_totals(parts: Iterable[Tensor]) -> Tensor:
    """Return the totals of whole rows from the totals of their parts.

    Example:
        >>> join_totals([torch.tensor([[9.0, 3.0, 3.0]]), torch.tensor([[16.0, 4.0, 4.0]])]).tolist()
        [[25.0, 7.0, 4.0]]
    """
    every = torch.stack(list(parts))
    return torch.cat([every[..., :2].sum(0), every[..., 2:].amax(0)], -1)


def spans(pieces: Iterable[Tensor]) -> Tensor:
    """Return the largest minus the smallest entry of each row, over all pieces, in double precision.

    Example:
        >>> spans([torch.tensor([[3.0, -4.0]]), torch.tensor([[5.0]])]).tolist()
        [9.0]
    """
    ends = ((rows.amin(1).double(), rows.amax(1).double()) for rows in map(_rows, pieces))
    lowest, highest = zip(*ends, strict=True)
    return torch.stack(highest).amax(0) - torch.stack(lowest).amin(0)


def bounded_norms(sums: Tensor, span: Tensor, entries: int) -> Tensor:
    r"""Return the three norms of each row's change, divided by the range of what changes and by a factor of its size.

    .. math:: \frac{1}{\psi} \left\| \frac{J}{range} \right\|_p, \qquad
        \psi = \sqrt{N}, N, 1 \text{ for } p = F, 1, \infty

    Args:
        sums: the totals of each row of changes J.
        span: the range of what changes, for each row; where it is 0 the norms are 0, where it is no number neither are
            they.
        entries: N, the number of entries of what changes.

    Example:
        >>> bounded_norms(totals([torch.tensor([[3.0, -4.0, 0.0, 0.0]])]), torch.tensor([2.0]), entries=4).tolist()
        [[1.25, 0.875, 2.0]]

    References:
        Mo et al., Layer-wise Characterization of Latent Information Leakage in Federated Learning, 2021, eq. 10.
    """
    factors = torch.tensor([entries**0.5, entries, 1], dtype=torch.float64)
    norms = torch.cat([sums[..., :1].sqrt(), sums[..., 1:]], -1) / factors
    span = span.double()[..., None]
    return torch.where(span == 0, 0.0, norms / torch.where(span == 0, 1.0, span))


def _rows(piece: Tensor) -> Tensor:
    return piece.detach().cpu().reshape(len(piece), -1)


def _totals(rows: Tensor) -> Tensor:
    # Sums in the tensors' own precision are fast; blocks keep them exact, and a scale keeps squares from vanishing.
    largest = torch.maximum(rows.amax(1), -rows.amin(1))
    blocks = torch.split(rows / torch.where(largest > 0, largest, 1)[:, None], _BLOCK, dim=1)
    lengths, sums = (
        torch.stack([torch.linalg.vector_norm(block, p, dim=1).double() for block in blocks]) for p in (2, 1)
    )
    scale = largest.double()
    return torch.stack([lengths.square().sum(0) * scale.square(), sums.sum(0) * scale, scale], -1)
