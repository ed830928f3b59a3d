"""Estimates: numbers with their intervals, and what becomes of these in means, differences and ratios."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean

from leaktight.core.value import Value


class Estimate(Value):
    """A number with the ends of its 95 % interval, None where they are not known.

    Args:
        value: the number.
        low: the lower end.
        high: the upper end.
    """

    value: float
    low: float | None = None
    high: float | None = None


def mean_of(estimates: Sequence[Estimate | None]) -> Estimate | None:
    """Return the mean; its interval is that of errors which all have the same sign. None of nothing, or with a gap.

    Example:
        >>> mean_of([Estimate(value=1.0, low=0.5, high=2.0), Estimate(value=2.0, low=1.5, high=4.0)])
        Estimate(value=1.5, low=1.0, high=3.0)
    """
    known = [one for one in estimates if one is not None]
    if not known or len(known) < len(estimates):
        return None
    lows = [one.low for one in known if one.low is not None]
    highs = [one.high for one in known if one.high is not None]
    value = fmean(one.value for one in known)
    if min(len(lows), len(highs)) < len(known):
        return Estimate(value=value)
    return Estimate(value=value, low=fmean(lows), high=fmean(highs))


def difference(one: Estimate | None, other: Estimate | None) -> Estimate | None:
    r"""Return one number less another, with Newcombe's interval of a difference.

    With \(h\) the distance from a value to an end of its interval, the lower end is \(d - \sqrt{h_{one,low}^2 + h_{other,high}^2}\), as
    if both were independent. Numbers on the same victims or test data vary together, which makes the interval cautious.

    Example:
        >>> difference(Estimate(value=2.0, low=1.7, high=2.3), Estimate(value=1.0, low=0.6, high=1.4))
        Estimate(value=1.0, low=0.5, high=1.5)

    References:
        Newcombe, "Interval estimation for the difference between independent proportions", 1998, method 10.
    """
    if one is None or other is None:
        return None
    value = one.value - other.value
    if one.low is None or one.high is None or other.low is None or other.high is None:
        return Estimate(value=value)
    below = math.hypot(one.value - one.low, other.high - other.value)
    over = math.hypot(one.high - one.value, other.value - other.low)
    return Estimate(value=value, low=value - below, high=value + over)


def relative(one: Estimate | None, other: Estimate | None) -> Estimate | None:
    """Return by which share one positive number exceeds another; its interval is that of the difference of their logarithms.

    Example:
        >>> relative(Estimate(value=3.0, low=3.0, high=3.0), Estimate(value=2.0, low=1.0, high=4.0))
        Estimate(value=0.5, low=-0.25, high=2.0)
    """
    if one is None or other is None or other.value <= 0:
        return None
    value = one.value / other.value
    if one.low is None or one.high is None or other.low is None or other.high is None or min(one.low, other.low) <= 0:
        return Estimate(value=value - 1)
    below = math.hypot(math.log(one.value / one.low), math.log(other.high / other.value))
    over = math.hypot(math.log(one.high / one.value), math.log(other.value / other.low))
    return Estimate(value=value - 1, low=value * math.exp(-below) - 1, high=value * math.exp(over) - 1)


def largest(estimates: Sequence[Estimate | None]) -> Estimate | None:
    """Return the number that is furthest from 0; None of nothing, or with a gap.

    Example:
        >>> largest([Estimate(value=1.0), Estimate(value=-2.0)])
        Estimate(value=-2.0, low=None, high=None)
    """
    known = [one for one in estimates if one is not None]
    return max(known, key=lambda one: abs(one.value)) if known and len(known) == len(estimates) else None
