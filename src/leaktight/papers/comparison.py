"""Comparisons: what becomes of readings and their intervals in means, differences and ratios."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean

from leaktight.core.metric import Reading
from leaktight.statistics.pooling import minus


def mean_of(readings: Sequence[Reading | None]) -> Reading | None:
    """Return the mean; its interval is that of errors which all have the same sign. None of nothing, or with a gap.

    Example:
        >>> one, other = (Reading(name="auc", value=v, low=v - 0.5, high=v + 1) for v in (1.0, 2.0))
        >>> found = mean_of([one, other])
        >>> found.value, found.low, found.high
        (1.5, 1.0, 2.5)
    """
    known = _without_gap(readings)
    if not known:
        return None
    lows = [reading.low for reading in known if reading.low is not None]
    highs = [reading.high for reading in known if reading.high is not None]
    value = fmean(reading.value for reading in known)
    if min(len(lows), len(highs)) < len(known):
        return Reading(name=known[0].name, value=value)
    return Reading(name=known[0].name, value=value, low=fmean(lows), high=fmean(highs))


def difference(one: Reading | None, other: Reading | None) -> Reading | None:
    """Return one number less another, with Newcombe's interval of a difference; None if one is missing.

    The interval is that of independent numbers. Those on the same victims or test data vary together, which makes it
    cautious.
    """
    return None if one is None or other is None else minus(one, other, one.name)


def relative(one: Reading | None, other: Reading | None) -> Reading | None:
    """Return by which share one positive number exceeds another.

    The interval is that of the difference of their logarithms.

    Example:
        >>> found = relative(*(Reading(name="ratio", value=v, low=v, high=v) for v in (3.0, 2.0)))
        >>> found.value, found.low, found.high
        (0.5, 0.5, 0.5)
    """
    if one is None or other is None or other.value <= 0:
        return None
    value = one.value / other.value
    if one.low is None or one.high is None or other.low is None or other.high is None or min(one.low, other.low) <= 0:
        return Reading(name=one.name, value=value - 1)
    below = math.hypot(math.log(one.value / one.low), math.log(other.high / other.value))
    over = math.hypot(math.log(one.high / one.value), math.log(other.value / other.low))
    return Reading(name=one.name, value=value - 1, low=value * math.exp(-below) - 1, high=value * math.exp(over) - 1)


def farthest(readings: Sequence[Reading | None]) -> Reading | None:
    """Return the number that is farthest from 0; None of nothing, or with a gap."""
    return max(_without_gap(readings), key=lambda reading: abs(reading.value), default=None)


def highest(readings: Sequence[Reading | None]) -> Reading | None:
    """Return the largest number; None of nothing, or with a gap."""
    return max(_without_gap(readings), key=lambda reading: reading.value, default=None)


def lowest(readings: Sequence[Reading | None]) -> Reading | None:
    """Return the smallest number; None of nothing, or with a gap."""
    return min(_without_gap(readings), key=lambda reading: reading.value, default=None)


def _without_gap(readings: Sequence[Reading | None]) -> list[Reading]:
    """Return all readings, or none of them if one is missing."""
    known = [reading for reading in readings if reading is not None]
    return known if len(known) == len(readings) else []
