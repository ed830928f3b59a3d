"""Paired differences: how much better one model is than another on the same rows.

The interval takes into account that the rows are the same.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist, fmean, variance

import torch
from scipy.special import stdtrit
from torch import Tensor

from leaktight.core.errors import InvalidValue
from leaktight.statistics.interval import Interval, wilson
from leaktight.statistics.outcomes import Outcomes

Pair = tuple[Outcomes, Outcomes]
"""What became of the same rows under two models."""


def newcombe(one: Tensor, other: Tensor, level: float = 0.95) -> tuple[float, float]:
    r"""Return Newcombe's interval of the difference of two shares that were measured on the same rows.

    With shares \(p_1, p_2\), their Wilson intervals \((l_i, u_i)\) and \(\hat\phi\) the correlation of hits, corrected
    for continuity,

    .. math:: \hat d - \sqrt{(p_1 - l_1)^2 - 2 \hat\phi (p_1 - l_1)(u_2 - p_2) + (u_2 - p_2)^2}

    is its lower end; the upper end swaps l and u. It has a width even where both models are right on the same rows.

    Args:
        one: 0 or 1 for each row, at least one.
        other: the same rows under the other model.
        level: the coverage in (0, 1); larger is wider.

    Example:
        >>> hits = torch.tensor([1.0] * 80 + [0.0] * 20)
        >>> low, high = newcombe(hits, torch.cat([torch.zeros(5), hits[5:]]))
        >>> round(low, 3), round(high, 3)
        (0.001, 0.102)

    References:
        Newcombe, Improved Confidence Intervals for the Difference between Binomial Proportions Based on Paired Data,
        1998, method 10.
    """
    n = len(one)
    if n == 0 or len(other) != n:
        raise InvalidValue(
            f"A paired interval needs the same rows twice, at least one. Got {n} and {len(other)} instead."
        )
    both, only, less = ((one * other).sum().item(), (one * (1 - other)).sum().item(), ((1 - one) * other).sum().item())
    neither = n - both - only - less
    product = both * neither - only * less
    scale = math.sqrt((both + only) * (less + neither) * (both + less) * (only + neither))
    phi = 0.0 if scale == 0 else (max(product - n / 2, 0.0) if product > 0 else product) / scale
    (below_1, above_1), (below_2, above_2) = (_arms(hits, n, level) for hits in (both + only, both + less))
    value = (only - less) / n
    low = value - math.sqrt(max(0.0, below_1**2 - 2 * phi * below_1 * above_2 + above_2**2))
    high = value + math.sqrt(max(0.0, above_1**2 - 2 * phi * above_1 * below_2 + below_2**2))
    return low, high


def paired_interval(pairs: Sequence[Pair], values: Sequence[float], level: float = 0.95) -> Interval:
    r"""Return the interval of a mean difference over seeds, where every seed's two models were tested on the same rows.

    One seed: Newcombe's for hits, DeLong's for ranks, a normal one for shares. It holds for the rows as a sample, and
    not for other training runs. Of k seeds it is the wider of two on each side. With \(h_s\) the half-widths of the
    seeds, and \(\rho_{st}\) the correlation over rows of their differences, the first counts rows alone, which are the
    same in every seed and so do not average out:

    .. math:: h^2 = \frac{1}{k^2} \sum_{s,t} \rho_{st} h_s h_t .

    The second counts training runs as a sample too. With c the mean covariance over rows between two seeds and \(s^2\)
    the variance of the k differences, it is \(t \sqrt{c + s^2 / k}\), where t has Satterthwaite's degrees of freedom
    \((k - 1) ((c + s^2/k) / (s^2/k))^2\): with two or three seeds it is wide, because so few training runs say little
    about the next.

    Args:
        pairs: for each seed the outcomes of the better and of the other model.
        values: for each seed the difference itself, in the same order.
        level: the coverage in (0, 1); larger is wider.

    Example:
        >>> bare, under = (Outcomes("hits", (torch.arange(100) < hits,)) for hits in (80, 70))
        >>> low, high = paired_interval([(bare, under)], [0.1])
        >>> round(low, 3), round(high, 3)
        (0.038, 0.165)

    References:
        DeLong, DeLong and Clarke-Pearson, Comparing the Areas under Two or More Correlated ROC Curves, 1988.
        Zou and Donner, Construction of Confidence Limits about Effect Measures: a General Approach, 2008 (half-widths
        of a sum). Satterthwaite, An Approximate Distribution of Estimates of Variance Components, 1946.
    """
    if (
        not pairs
        or len(pairs) != len(values)
        or not all(outcomes.matches(pairs[0][0]) for pair in pairs for outcomes in pair)
    ):
        raise InvalidValue(
            "A paired interval needs the outcomes of the same rows for each difference. Got others instead."
        )
    if min(map(len, pairs[0][0].groups)) < 2:
        return None, None
    z, k, value = NormalDist().inv_cdf((1 + level) / 2), len(pairs), fmean(values)
    covariance = _covariance(pairs)
    spread = covariance.diagonal().sqrt()
    # A seed without any difference goes along with none.
    correlation = torch.nan_to_num(covariance / spread.outer(spread), 0.0, 0.0, 0.0).fill_diagonal_(1.0)
    halves = [_halves(pair, own.item(), z, level) for pair, own in zip(pairs, spread, strict=True)]
    shared, training = _parts(values, covariance)
    seeds = 0.0 if training == 0 else math.sqrt(shared + training) * _quantile(shared, training, k, level)
    rows = [
        math.sqrt(max(0.0, (side @ correlation @ side).item())) / k
        for side in torch.tensor(halves, dtype=torch.float64).T
    ]
    return value - max(rows[0], seeds), value + max(rows[1], seeds)


def _arms(hits: float, n: int, level: float) -> tuple[float, float]:
    """Return how far Wilson's interval goes below and above a share."""
    low, high = wilson(hits, n, level)
    if low is None or high is None:
        return 0.0, 0.0
    return hits / n - low, high - hits / n


def _differences(pair: Pair) -> list[Tensor]:
    return [one.double() - other.double() for one, other in zip(pair[0].groups, pair[1].groups, strict=True)]


def _covariance(pairs: Sequence[Pair]) -> Tensor:
    """Return the covariance matrix of the seeds' mean differences, as the rows are a sample.

    It is the sum over groups of rows.
    """
    seeds = [_differences(pair) for pair in pairs]
    groups = [torch.stack(group) for group in zip(*seeds, strict=True)]
    whole = [torch.cov(group).reshape(len(pairs), len(pairs)) / group.shape[1] for group in groups]
    return torch.stack(whole).sum(0)


def _halves(pair: Pair, spread: float, z: float, level: float) -> tuple[float, float]:
    """Return how far one seed's own interval goes below and above its difference."""
    if pair[0].kind != "hits":
        return z * spread, z * spread
    one, other = (outcomes.groups[0].double() for outcomes in pair)
    low, high = newcombe(one, other, level)
    value = (one - other).mean().item()
    return value - low, high - value


def _parts(values: Sequence[float], covariance: Tensor) -> tuple[float, float]:
    """Return the variance of the mean over seeds in two parts.

    The first is what all seeds share, by their rows. The second is what each training run has of its own.
    """
    k = len(values)
    if k < 2:
        return 0.0, 0.0
    shared = (covariance.sum() - covariance.diagonal().sum()).item() / (k * (k - 1))
    return max(0.0, shared), variance(values) / k


def _quantile(shared: float, training: float, k: int, level: float) -> float:
    """Return the t quantile for a variance of which one part is known from many rows and the other from k seeds."""
    return float(stdtrit((k - 1) * ((shared + training) / training) ** 2, (1 + level) / 2))


def paired_difference(one: Tensor, other: Tensor, level: float = 0.95) -> tuple[float, Interval]:
    """Return how much larger one of two sets of numbers is on average, with an interval, measured on the same things.

    Of hits and misses alone the interval is Newcombe's; of other numbers that of Student's t over the differences, and
    of a single thing there is none.

    Args:
        one: a number for each thing, at least one.
        other: the same things, measured otherwise.
        level: the coverage in (0, 1); larger is wider.

    Example:
        >>> value, (low, high) = paired_difference(torch.tensor([20.0, 22.0, 24.0]), torch.tensor([19.0, 20.0, 21.0]))
        >>> value, round(low, 2), round(high, 2)
        (2.0, -0.48, 4.48)

    References:
        Student, The Probable Error of a Mean, 1908; Newcombe, 1998, method 10.
    """
    first, second = one.detach().flatten().double().cpu(), other.detach().flatten().double().cpu()
    if len(first) == 0 or len(first) != len(second):
        raise InvalidValue(
            f"A paired difference needs the same things twice, at least one. Got {len(first)} and {len(second)} "
            "instead."
        )
    differences = first - second
    value, n = differences.mean().item(), len(differences)
    if n < 2:
        return value, (None, None)
    if set(torch.cat([first, second]).tolist()) <= {0.0, 1.0}:
        return value, newcombe(first, second, level)
    half = float(stdtrit(n - 1, (1 + level) / 2)) * differences.std().item() / math.sqrt(n)
    return value, (value - half, value + half)
