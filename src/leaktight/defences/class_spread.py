"""How the rows of two classes lie in space: where their middles are, and how far they spread around them."""

from __future__ import annotations

import dataclasses

import torch
from torch import Tensor

from leaktight.defences.cut_gradient import Rows
from leaktight.defences.scratch_memory import room

# Below this part of the mean square, the variance is lost in the rounding of single precision.
CANCELLED = 0.01
BLOCK = 1024


@dataclasses.dataclass(frozen=True)
class Spread:
    """The rows of one class.

    Args:
        count: how many there are.
        mean: their mean, in double precision; zero if there are none.
        variance: the mean over coordinates of their (biased) variance; zero if there are none.
    """

    count: int
    mean: Tensor = dataclasses.field(repr=False)
    variance: float


def spreads(rows: Rows, positives: Tensor) -> tuple[Spread, Spread]:
    """Return how the negatives and how the positives lie.

    Args:
        rows: a cut gradient.
        positives: which of its rows belong to positive examples.

    Example:
        >>> matrix = torch.tensor([[1.0, 0.0], [3.0, 0.0], [0.0, 5.0]])
        >>> negatives, positives = spreads(Rows(matrix, matrix.norm(dim=1)), torch.tensor([False, False, True]))
        >>> negatives.mean.tolist(), negatives.variance, positives.mean.tolist(), positives.variance
        ([2.0, 0.0], 0.5, [0.0, 5.0], 0.0)
    """
    members = torch.stack([~positives, positives]).to(rows.matrix)
    counts = [int(count) for count in (len(rows) - positives.sum(), positives.sum())]
    # Two quick passes; of the class with fewer rows first, because what is left is then the larger part. To pick rows is quicker
    # than to multiply all of them by zeros and ones.
    fewer = int(counts[1] < counts[0])
    places = (positives if fewer else ~positives).nonzero()[:, 0]
    picked = room((len(places), rows.dimensions), rows.matrix)
    some = torch.index_select(rows.matrix, 0, places, out=picked).sum(0)
    rest = rows.matrix.sum(0) - some
    sums = torch.stack([rest, some] if fewer else [some, rest]).double()
    means = sums / torch.tensor([[max(count, 1)] for count in counts], device=rows.matrix.device)
    totals = _per_class(rows.norms, members, counts)
    variances = [total - mean.square().sum().item() for total, mean in zip(totals, means, strict=True)]
    if any(variance < CANCELLED * total for variance, total in zip(variances, totals, strict=True)):
        variances = _per_class(_distances(rows.matrix, positives, means), members, counts)
    found = zip(counts, means, variances, strict=True)
    negative, positive = (
        Spread(count, mean, max(variance, 0.0) / rows.dimensions if count > 1 else 0.0) for count, mean, variance in found
    )
    return negative, positive


def _per_class(lengths: Tensor, members: Tensor, counts: list[int]) -> list[float]:
    """Return the mean square of each class's lengths."""
    squares = (members.double() @ lengths.double().square()).tolist()
    return [square / max(count, 1) for square, count in zip(squares, counts, strict=True)]


def _distances(matrix: Tensor, positives: Tensor, means: Tensor) -> Tensor:
    """Return each row's distance from its class's mean, block by block so that the differences stay in the cache."""
    middles, blocks = means.to(matrix), zip(torch.split(matrix, BLOCK), torch.split(positives.long(), BLOCK), strict=True)
    return torch.cat([torch.linalg.vector_norm(block - middles[which], dim=1) for block, which in blocks])
