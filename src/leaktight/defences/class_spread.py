"""The two classes of a cut gradient: where their rows lie.

It also says what a label party takes them for if a batch has only one.
"""

from __future__ import annotations

import dataclasses

import torch
from torch import Tensor

from leaktight.core.local import Memory
from leaktight.defences.cut_gradient import Rows, scratch
from leaktight.defences.divergence import Classes

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


@dataclasses.dataclass(frozen=True)
class ClassSpread:
    """Two classes, as far as a batch shows them.

    Args:
        classes: their sizes.
        difference: the mean of the positives minus that of the negatives, in double precision.
        seen: whether the batch had both; else no bound is known to hold.
    """

    classes: Classes
    difference: Tensor = dataclasses.field(repr=False)
    seen: bool


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
    # Two quick passes; of the class with fewer rows first, because what is left is then the larger part. To pick rows
    # is quicker than to multiply all of them by zeros and ones.
    fewer = int(counts[1] < counts[0])
    places = (positives if fewer else ~positives).nonzero()[:, 0]
    picked = scratch((len(places), rows.dimensions), rows.matrix)
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
        Spread(count, mean, max(variance, 0.0) / rows.dimensions if count > 1 else 0.0)
        for count, mean, variance in found
    )
    return negative, positive


def estimate(rows: Rows, positive: Tensor, memory: Memory) -> ClassSpread:
    r"""Return what the two classes are taken for, and remember a batch with both.

    Of a batch of one class the other class's variance and the share of positives are those of the last batch with both,
    in units of this batch: row \(g_i\) of n carries \(1 / n\). The difference of the means is the longer of that
    batch's and of the one to a mirror image, \(2 \sqrt{\sum_i \|g_i\|^2 / n}\) along the mean. The variance that both
    classes have at least is not counted on: noise for these classes is more than enough for classes with it, and never
    none unless all rows are zero.

    Args:
        rows: a cut gradient of at least one row.
        positive: which rows belong to positive examples.
        memory: where the last batch with both classes is kept.

    Example:
        >>> matrix = torch.tensor([[3.0, 4.0]])
        >>> found = estimate(Rows(matrix, matrix.norm(dim=1)), torch.tensor([True]), {})
        >>> found.seen, found.difference.tolist(), found.classes.gap
        (False, [6.0, 8.0], 100.0)
    """
    negatives, positives = spreads(rows, positive)
    if negatives.count and positives.count:
        difference = positives.mean - negatives.mean
        u, v, share = negatives.variance, positives.variance, positives.count / len(rows)
        memory["last"] = {
            "difference": difference.cpu(),
            "negatives": u,
            "positives": v,
            "share": share,
            "examples": float(len(rows)),
        }
        return ClassSpread(Classes(u, v, _square(difference), rows.dimensions, share), difference, seen=True)
    return _of_one(rows, positives if positives.count else negatives, bool(positives.count), memory.get("last", {}))


def _per_class(lengths: Tensor, members: Tensor, counts: list[int]) -> list[float]:
    """Return the mean square of each class's lengths."""
    squares = (members.double() @ lengths.double().square()).tolist()
    return [square / max(count, 1) for square, count in zip(squares, counts, strict=True)]


def _distances(matrix: Tensor, positives: Tensor, means: Tensor) -> Tensor:
    """Return each row's distance from its class's mean, block by block so that the differences stay in the cache."""
    middles, blocks = (
        means.to(matrix),
        zip(torch.split(matrix, BLOCK), torch.split(positives.long(), BLOCK), strict=True),
    )
    return torch.cat([torch.linalg.vector_norm(block - middles[which], dim=1) for block, which in blocks])


def _of_one(rows: Rows, present: Spread, is_positive: bool, last: Memory) -> ClassSpread:
    """Return two classes of which only one is there."""
    difference, other, share = _mirror_difference(rows, present), present.variance, 0.5
    if "examples" in last and len(last["difference"]) == rows.dimensions:
        unit = last["examples"] / len(rows)
        remembered = last["difference"].to(difference) * unit
        difference = max(difference, remembered, key=_square)
        other, share = last["negatives" if is_positive else "positives"] * unit**2, last["share"]
    shared = min(present.variance, other)
    own, other = present.variance - shared, other - shared
    u, v = (other, own) if is_positive else (own, other)
    return ClassSpread(Classes(u, v, _square(difference), rows.dimensions, share), difference, seen=False)


def _mirror_difference(rows: Rows, present: Spread) -> Tensor:
    """Return the difference to a mirror image: twice the rows' length, along their mean.

    If the mean is zero, it is along the longest row.
    """
    middle = present.mean if present.mean.any() else rows.matrix[rows.norms.argmax()].double()
    length = rows.norms.double().square().mean().sqrt()
    return 2 * length * torch.nn.functional.normalize(middle, dim=0, eps=0.0) if length else torch.zeros_like(middle)


def _square(vector: Tensor) -> float:
    return vector.square().sum().item()
