"""The AUC of scores that know nothing: how far it strays from a half for few positives or negatives."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from statistics import NormalDist

import torch
from torch import Tensor

from leaktight.core.errors import InvalidValue

# Counts are exact in double precision below this; and as many sums as are quickly counted.
_EXACT, _SUMS = 2**53, 1_000_000
_GRID = 1000


@lru_cache(maxsize=1024)
def null_auc(positives: int, negatives: int) -> tuple[Tensor, Tensor]:
    r"""Return the values that the AUC of random scores takes, in order, and the probability of each.

    All orders of m positives and n negatives are equally likely. The number of them with \(AUC = u / mn\) is the
    coefficient of \(x^u\) in

    .. math:: \prod_{i=1}^m \frac{1 - x^{n+i}}{1 - x^i},

    which is reckoned exactly as far as it fits; beyond, the AUC is as good as normal with variance
    \((m + n + 1) / (12 m n)\), and comes as a thousand equally likely values.

    Args:
        positives: m, at least 1.
        negatives: n, at least 1.

    Example:
        >>> values, weights = null_auc(1, 2)
        >>> values.tolist(), [round(weight, 3) for weight in weights.tolist()]
        ([0.0, 0.5, 1.0], [0.333, 0.333, 0.333])

    References:
        Mann and Whitney, On a Test of Whether One of Two Random Variables Is Stochastically Larger than the Other,
        1947.
    """
    if min(positives, negatives) < 1:
        raise InvalidValue(
            f"An AUC needs positives and negatives. Got {positives} positives and {negatives} negatives."
        )
    few, many = sorted((positives, negatives))
    if few * many <= _SUMS and math.comb(few + many, few) < _EXACT:
        counts = _counts(few, many)
        return torch.linspace(0, 1, few * many + 1, dtype=torch.float64), counts / counts.sum()
    spread = math.sqrt((few + many + 1) / (12 * few * many))
    normal = [NormalDist().inv_cdf((place + 0.5) / _GRID) for place in range(_GRID)]
    values = (0.5 + spread * torch.tensor(normal, dtype=torch.float64)).clamp(0, 1)
    return values, torch.full((_GRID,), 1 / _GRID, dtype=torch.float64)


def null_quantile(sizes: Sequence[tuple[int, int]], share: float, *, signed: bool = True) -> float:
    r"""Return what a quantile over steps of the AUC would be if no score knew anything.

    Args:
        sizes: positives and negatives of each step.
        share: which quantile, in (0, 1).
        signed: False for that of \(0.5 + |AUC - 0.5|\).

    Example:
        >>> null_quantile([(25, 231)] * 20, 0.5), round(null_quantile([(25, 231)] * 20, 0.5, signed=False), 3)
        (0.5, 0.541)
        >>> round(null_quantile([(25, 231)] * 20, 0.95), 2)
        0.6
    """
    if signed and share == 0.5:
        return 0.5
    drawn = [null_auc(*size) for size in sizes]
    values = torch.cat([each for each, _ in drawn])
    weights = torch.cat([weight for _, weight in drawn]) / len(drawn)
    if not signed:
        values = 0.5 + (values - 0.5).abs()
    order = values.argsort(stable=True)
    reached = torch.searchsorted(weights[order].cumsum(0), share * (1 - 1e-12))
    return values[order][min(int(reached), len(order) - 1)].item()


def _counts(few: int, many: int) -> Tensor:
    """Return how many orders have each number of pairs in which the positive is higher."""
    counts = torch.zeros(few * many + 1, dtype=torch.float64)
    counts[0] = 1
    for number in range(1, few + 1):
        shift = many + number
        if shift < len(counts):
            counts[shift:] -= counts[:-shift].clone()
        counts = _divide(counts, number)
    return counts


def _divide(counts: Tensor, number: int) -> Tensor:
    """Divide a power series by 1 - x^number: add up every so many coefficients."""
    length = -(-len(counts) // number) * number
    padded = torch.cat([counts, counts.new_zeros(length - len(counts))])
    return padded.view(-1, number).cumsum(0).flatten()[: len(counts)]
