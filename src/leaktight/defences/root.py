"""Where an increasing function crosses zero."""

from __future__ import annotations

import math
from collections.abc import Callable

STEPS = 200


def crossing(function: Callable[[float], float], low: float, high: float, tolerance: float) -> tuple[float, float]:
    """Narrow an interval around the place where an increasing function crosses zero; return its two ends.

    Inverse quadratic interpolation where the last three points can be trusted, else halving: a few steps on a smooth
    function, never many more than bisection. The function may be infinite.

    Why not scipy: `brentq` returns one point, on either side of the zero, where the solver of sumKL needs an end that
    is on the safe side; in that solver it took 6 to 16 % longer and moved variances that hardly matter by up to 3e-5.
    `scipy.optimize.elementwise.find_root` is this algorithm and returns the bracket, but is made for arrays: one number
    costs it some 80 times as long.

    Args:
        function: at most 0 at `low`, at least 0 at `high`.
        low: the lower end.
        high: the upper end.
        tolerance: how long the interval may be in the end, relative to its ends.

    Example:
        >>> low, high = crossing(lambda x: x * x - 2, 0.0, 2.0, tolerance=1e-12)
        >>> low <= 2**0.5 <= high, high - low < 1e-11
        (True, True)

    References:
        Chandrupatla, "A new hybrid quadratic/bisection algorithm for finding the zero of a nonlinear function without
        using derivatives", 1997, section 3.
    """
    newest, across = low, high
    at_newest, at_across = function(low), function(high)
    part = 0.5
    for _ in range(STEPS):
        length, allowed = abs(across - newest), tolerance * max(abs(newest), abs(across))
        point = newest + part * (across - newest)
        if length <= allowed or at_newest == 0 or at_across == 0 or point in (newest, across):
            break
        at_point = function(point)
        if (at_point > 0) == (at_newest > 0):
            oldest, at_oldest = newest, at_newest
        else:
            oldest, at_oldest = across, at_across
            across, at_across = newest, at_newest
        newest, at_newest = point, at_point
        # A step of at least half the tolerance: it crosses over, so that in the end both sides are near.
        edge = min(0.5, 0.5 * allowed / (abs(across - newest) or 1.0))
        part = min(max(_part(newest, across, oldest, at_newest, at_across, at_oldest), edge), 1 - edge)
    if at_newest == 0 or at_across == 0:
        exact = newest if at_newest == 0 else across
        return exact, exact
    return min(newest, across), max(newest, across)


def _part(a: float, b: float, c: float, at_a: float, at_b: float, at_c: float) -> float:
    """Return how far to go from the newest point a to b on the other side: by interpolation through c too, or half."""
    if not math.isfinite(at_a + at_b + at_c) or at_a == at_c or at_b in (at_a, at_c):
        return 0.5
    place, level = (a - b) / (c - b), (at_a - at_b) / (at_c - at_b)
    if not (level * level < place and (1 - level) * (1 - level) < 1 - place):
        return 0.5
    return at_a / (at_b - at_a) * at_c / (at_b - at_c) + (c - a) / (b - a) * at_a / (at_c - at_a) * at_b / (at_c - at_b)
