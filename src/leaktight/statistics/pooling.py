"""Pooling: one reading from the readings of several seeds."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from statistics import NormalDist, fmean, variance

from leaktight.core.errors import InvalidValue
from leaktight.core.metric import Reading

Z = NormalDist().inv_cdf(0.975)


def pool(readings: Sequence[Reading]) -> Reading:
    r"""Return the mean over seeds, with an interval that covers the spread within and between them.

    With \(v_i\) the value of seed i, \(n_i\) its count, \(w_i = n_i / \sum n\), \(h_i\) the half-width of its interval
    and \(s^2\) the variance of the k values, the half-width is that of a random-effects mean,

    .. math:: \sqrt{\sum_i (w_i h_i)^2 + 1.96^2 \tau^2 / k}, \qquad \tau^2 = \max(0, s^2 - \overline{h_i^2} / 1.96^2) .

    Both sides are reckoned on their own, so that a share near 0 keeps its uneven interval. One seed is returned as it
    is: its interval says nothing about other training runs. Several seeds without any interval of their own get the
        spread alone.

    Args:
        readings: the same reading of each seed, at least one.

    Example:
        >>> one, two = (Reading(name="psnr", value=v, low=v - 3, high=v + 3, n=8) for v in (20.0, 22.0))
        >>> pooled = pool([one, two])
        >>> pooled.value, pooled.n, round(pooled.high - pooled.value, 2)
        (21.0, 16, 2.12)

    References:
        DerSimonian and Laird, Meta-Analysis in Clinical Trials, 1986 (the moment estimate of the spread between
        studies).
    """
    if not readings:
        raise InvalidValue("Pooling needs at least one reading. Got none instead.")
    first = readings[0]
    if len(readings) == 1:
        return first
    total = sum(reading.n for reading in readings)
    weights = [reading.n / total if total else 1 / len(readings) for reading in readings]
    value = sum(weight * reading.value for weight, reading in zip(weights, readings, strict=True))
    chances = [reading.chance for reading in readings]
    below, above = (_half(readings, weights, side) for side in (_below, _above))
    return first.model_copy(
        update={
            "value": value,
            "low": _in_range(readings, value - below),
            "high": _in_range(readings, value + above),
            "n": total,
            "chance": None if None in chances else fmean(c for c in chances if c is not None),
            "each": tuple(one for reading in readings for one in reading.each),
        }
    )


def _below(reading: Reading) -> float:
    return 0.0 if reading.low is None else reading.value - reading.low


def _above(reading: Reading) -> float:
    return 0.0 if reading.high is None else reading.high - reading.value


def _half(readings: Sequence[Reading], weights: Sequence[float], side: Callable[[Reading], float]) -> float:
    halves = [side(reading) for reading in readings]
    within = sum((weight * half) ** 2 for weight, half in zip(weights, halves, strict=True))
    between = max(0.0, variance(reading.value for reading in readings) - fmean(half**2 for half in halves) / Z**2)
    return math.sqrt(within + Z**2 * between / len(readings))


def _in_range(readings: Sequence[Reading], bound: float) -> float:
    """Keep a share's pooled interval inside [0, 1]; a difference of shares has no chance level and may go below 0."""
    if all(r.chance is not None and min(r.value, low(r)) >= 0 and max(r.value, high(r)) <= 1 for r in readings):
        return min(1.0, max(0.0, bound))
    return bound


def low(reading: Reading) -> float:
    """Return the lower end of a reading's interval, or its value if it has none."""
    return reading.value if reading.low is None else reading.low


def high(reading: Reading) -> float:
    """Return the upper end of a reading's interval, or its value if it has none."""
    return reading.value if reading.high is None else reading.high


def leakage(reading: Reading) -> float:
    """Return a number that grows with what leaks, whichever way the metric counts."""
    return -reading.value if reading.leaks == "low" else reading.value


def leaks_more(one: Reading, other: Reading) -> bool:
    """Return whether one reading shows more leakage than the other beyond both intervals.

    Example:
        >>> strong = Reading(name="psnr", value=30, low=28, high=32, leaks="high")
        >>> weak = Reading(name="psnr", value=12, low=11, high=13, leaks="high")
        >>> leaks_more(strong, weak), leaks_more(weak, strong)
        (True, False)
    """
    return high(one) < low(other) if one.leaks == "low" else low(one) > high(other)


def minus(one: Reading, other: Reading, name: str) -> Reading:
    """Return the difference of two readings with the interval of two independent ones.

    Both are often measured on the same test examples; then the true interval is as a rule narrower.

    Example:
        >>> one, other = (Reading(name="accuracy", value=v, low=v - 0.03, high=v + 0.03) for v in (0.5, 0.4))
        >>> loss = minus(one, other, "accuracy_loss")
        >>> round(loss.value, 2), round(loss.low, 3), round(loss.high, 3)
        (0.1, 0.058, 0.142)

    References:
        Newcombe, Interval Estimation for the Difference between Independent Proportions, 1998, method 10 (where both
        intervals are Wilson's).
    """
    value = one.value - other.value
    known = None not in (one.low, one.high, other.low, other.high)
    return Reading(
        name=name,
        value=value,
        low=value - math.hypot(_below(one), _above(other)) if known else None,
        high=value + math.hypot(_above(one), _below(other)) if known else None,
        n=min(one.n, other.n),
    )
