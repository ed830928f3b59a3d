"""What a label party takes its two classes for: from a batch that has both, or from memory and caution where it has one."""

from __future__ import annotations

import dataclasses

import torch
from torch import Tensor

from leaktight.core.local import Memory
from leaktight.defences.class_spread import Spread, spreads
from leaktight.defences.cut_gradient import Rows
from leaktight.defences.divergence import Classes


@dataclasses.dataclass(frozen=True)
class Estimate:
    """Two classes, as far as a batch shows them.

    Args:
        classes: their sizes.
        difference: the mean of the positives minus that of the negatives, in double precision.
        seen: whether the batch had both; else no bound is known to hold.
    """

    classes: Classes
    difference: Tensor = dataclasses.field(repr=False)
    seen: bool


def estimate(rows: Rows, positive: Tensor, memory: Memory) -> Estimate:
    r"""Return what the two classes are taken for, and remember a batch with both.

    Of a batch of one class the other class's variance and the share of positives are those of the last batch with both, in units of this
    batch: row \(g_i\) of n carries \(1 / n\). The difference of the means is the longer of that batch's and of the one to a mirror image,
    \(2 \sqrt{\sum_i \|g_i\|^2 / n}\) along the mean. The variance that both classes have at least is not counted on: noise for
    these classes is more than enough for classes with it, and never none unless all rows are zero.

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
        return Estimate(Classes(u, v, _square(difference), rows.dimensions, share), difference, seen=True)
    return _of_one(rows, positives if positives.count else negatives, bool(positives.count), memory.get("last", {}))


def _of_one(rows: Rows, present: Spread, is_positive: bool, last: Memory) -> Estimate:
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
    return Estimate(Classes(u, v, _square(difference), rows.dimensions, share), difference, seen=False)


def _mirror_difference(rows: Rows, present: Spread) -> Tensor:
    """Return the difference to a mirror image: twice the rows' length, along their mean, or along the longest row if that is zero."""
    middle = present.mean if present.mean.any() else rows.matrix[rows.norms.argmax()].double()
    length = rows.norms.double().square().mean().sqrt()
    return 2 * length * torch.nn.functional.normalize(middle, dim=0, eps=0.0) if length else torch.zeros_like(middle)


def _square(vector: Tensor) -> float:
    return vector.square().sum().item()
