"""Differences of two readings that were measured apart: Newcombe's interval. `paired` has those on the same rows."""

from __future__ import annotations

import math

from leaktight.core.metric import Reading


def minus(one: Reading, other: Reading, name: str) -> Reading:
    r"""Return the difference of two readings with Newcombe's interval for two independent ones.

    With \(h\) the distance from a value to an end of its interval, the lower end is \(d - \sqrt{h_{one,low}^2 +
    h_{other,high}^2}\). Both are often measured on the same test examples; then the true interval is as a rule
    narrower.

    Example:
        >>> one, other = (Reading(name="accuracy", value=v, low=v - 0.03, high=v + 0.03) for v in (0.5, 0.4))
        >>> loss = minus(one, other, "accuracy_loss")
        >>> round(loss.value, 2), round(loss.low, 3), round(loss.high, 3)
        (0.1, 0.058, 0.142)

    References:
        Newcombe, Interval Estimation for the Difference between Independent Proportions, 1998, method 10 (where both
        intervals are Wilson's).
    """
    value, n = one.value - other.value, min(one.n, other.n)
    if one.low is None or one.high is None or other.low is None or other.high is None:
        return Reading(name=name, value=value, n=n)
    below = math.hypot(one.value - one.low, other.high - other.value)
    above = math.hypot(one.high - one.value, other.value - other.low)
    return Reading(name=name, value=value, low=value - below, high=value + above, n=n)
