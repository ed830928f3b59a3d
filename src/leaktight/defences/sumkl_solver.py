"""The noise that makes two Gaussian classes hardest to tell apart: the pure solver of the sumKL defence.

All in plain floating-point numbers: a solve takes some ten evaluations of a formula.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from leaktight.core.errors import InvalidValue
from leaktight.defences.divergence import Classes, ClassNoise, NoisePair, power, sumkl
from leaktight.defences.root import crossing

# Relative sizes below count as zero and powers above as this: far beyond what changes an answer, near enough for
# squares.
TINY, HUGE = 1e-100, 1e100
# A share of positives nearer to 0 or 1 is moved here for the search: a batch of 10^9 examples.
EDGE = 1e-9


def strongest(classes: Classes, budget: float) -> NoisePair:
    r"""Return the noise that minimises sumKL among all whose power is at most the budget.

    Let \(u \le v\); else swap the classes. Then \(\lambda_2^{(1)} = 0\) and the power is spent in full. For a given
    \(x = \lambda_2^{(0)}\) the best \(\lambda_1\) have a closed form, and what remains is convex in \(x\): its
    derivative is continuous, and on each of the three pieces (neither, one or the other \(\lambda_1\) at the end of its
    range) it rises. So the derivative's only zero on \([0, \min(v - u, P / ((1 - p) d))]\) is the minimum. The problem
    is
    homogeneous: it is solved in units of the largest of u, v and g.

    Args:
        classes: what the noise shall hide.
        budget: \(P\), at least 0.

    Example:
        >>> noise = strongest(Classes(1.0, 2.0, 3.0, 4, 0.25), budget=6.0)
        >>> round(noise.negatives.along, 3), round(noise.negatives.across, 3)
        (4.381, 0.763)
        >>> round(noise.positives.along, 3), noise.positives.across
        (3.989, 0.0)
    """
    if not 0 <= budget < math.inf:
        raise InvalidValue(f"The budget of noise must be in [0, inf). Got {budget} instead.")
    unit = max(classes.negatives, classes.positives, classes.gap)
    if unit == 0 or budget < TINY * unit:
        return NoisePair()
    u, v, g = (_relative(size, unit) for size in (classes.negatives, classes.positives, classes.gap))
    spend = budget / unit if budget < HUGE * unit else HUGE
    p = min(max(classes.share, EDGE), 1 - EDGE)
    if u <= v:
        protection = _smaller_first(u, v, g, classes.dimensions, p, spend)
    else:
        swapped = _smaller_first(v, u, g, classes.dimensions, 1 - p, spend)
        protection = NoisePair(swapped.positives, swapped.negatives)
    return _within(classes, _scale(protection, unit), budget)


def least(classes: Classes, allowed: float, guess: float | None = None) -> NoisePair:
    r"""Return the noise of least power whose sumKL is at most the allowed one.

    The least sumKL for a power falls as the power grows, so the power is a root, searched for in logarithms. Where no
    power up to \(10^{100}\) times the classes' size meets it, which only rounding can bring about, the noise of that
    power is returned.

    Args:
        classes: what the noise shall hide.
        allowed: the largest sumKL, above 0; see `divergence.allowed_sumkl`.
        guess: a power near the answer, such as the last batch's: it saves some steps and changes nothing else.

    Example:
        >>> classes = Classes(1.0, 2.0, 3.0, 4, 0.25)
        >>> noise = least(classes, allowed=0.16)
        >>> round(sumkl(classes, noise), 6), round(power(classes, noise), 2)
        (0.16, 19.63)
    """
    if not allowed > 0:
        raise InvalidValue(
            f"The allowed sumKL must be above 0. Got {allowed} instead; ask for a detection error below one half."
        )
    if sumkl(classes, NoisePair()) <= allowed:
        return NoisePair()
    unit = max(classes.negatives, classes.positives, classes.gap)
    middle = classes.gap / unit / allowed + classes.dimensions * abs(classes.positives - classes.negatives) / unit
    if guess is not None and TINY * unit < guess < HUGE * unit:
        middle = guess / unit
    first = math.log(min(max(middle, TINY), HUGE))

    def margin(logarithm: float) -> float:
        """Return the logarithm of allowed over reached sumKL at a power.

        It is nearly straight, and negative where the power is too little.
        """
        reached = sumkl(classes, strongest(classes, math.exp(logarithm) * unit))
        return math.log(max(TINY, allowed / reached)) if reached > allowed * TINY else -math.log(TINY)

    low, high = _bracket(margin, first, 0.01 if guess is not None else 1.0)
    # Counted from 1 so that the tolerance, relative to where it is, is one of the power.
    _, end = crossing(lambda place: margin(low + (place - 1)), 1.0, 1.0 + (high - low), tolerance=1e-12)
    budget, step = math.exp(low + (end - 1)) * unit, 1e-13
    noise = strongest(classes, budget)
    # At the very root the last digit decides: on the safe side, please.
    while sumkl(classes, noise) > allowed and step < 1e-3:
        budget, step = budget * (1 + step), 2 * step
        noise = strongest(classes, budget)
    return noise


def _bracket(function: Callable[[float], float], start: float, step: float) -> tuple[float, float]:
    """Return two logarithms of relative powers between which an increasing function crosses zero.

    They are searched in growing steps from a start.
    """
    lowest, highest = math.log(TINY), math.log(HUGE)
    low = high = start
    if function(start) < 0:
        while high < highest:
            low, high, step = high, min(high + step, highest), 2 * step
            if function(high) >= 0:
                break
    else:
        while low > lowest:
            low, high, step = max(low - step, lowest), low, 2 * step
            if function(low) < 0:
                break
    return low, high


def _smaller_first(u: float, v: float, g: float, d: int, p: float, budget: float) -> NoisePair:
    """Solve the problem for u <= v, all sizes at most 1."""
    q = 1 - p
    longest = min(v - u, budget / (q * d)) if d > 1 else 0.0

    def excess(a: float) -> float:
        """Return a number of the sign of the derivative by x = a - u, without its pole at a = 0."""
        rise = _derivative(a - u, u, v, g, d, p, budget) / (d - 1)
        return a - v / math.sqrt(max(1 + rise * v, TINY))

    x = 0.0
    if longest > 0:
        if excess(u + longest) <= 0:
            x = longest
        elif u == 0 or excess(u) < 0:
            x = min(max(crossing(excess, max(u, TINY), u + longest, tolerance=1e-11)[1] - u, 0.0), longest)
    low, high = _along(x, u, v, g, d, p, budget)
    return NoisePair(ClassNoise(low, x), ClassNoise(high, 0.0))


def _along(x: float, u: float, v: float, g: float, d: int, p: float, budget: float) -> tuple[float, float]:
    """Return both classes' best variances along the difference of the means, for a given variance x across it."""
    q = 1 - p
    left, low, high = _free(x, u, v, g, d, p, budget)
    if x < low < left / q:
        return low, max(high, 0.0)
    low = max(min(low, left / q), x)
    return low, max((left - q * low) / p, 0.0)


def _free(x: float, u: float, v: float, g: float, d: int, p: float, budget: float) -> tuple[float, float, float]:
    r"""Return what x leaves of the budget, and the best variances along the difference if none were forbidden.

    On the line where the rest is spent the minimum is at \(B / A = \sqrt{(C + (1 - p) g) / (C + p g)}\),
    \(C = (1 - p) A + p B\).
    """
    q = 1 - p
    left = max(budget - q * (d - 1) * x, 0.0)
    total = left + q * u + p * v
    ratio = math.sqrt((total + q * g) / (total + p * g))
    size = total / (q + p * ratio)
    return left, size - u, ratio * size - v


def _derivative(x: float, u: float, v: float, g: float, d: int, p: float, budget: float) -> float:
    """Return how fast the terms along the difference grow with x, which takes power from them."""
    q = 1 - p
    left, low, _ = _free(x, u, v, g, d, p, budget)
    if low >= left / q:
        along = max(left / q + u, TINY)
        return (d - 1) * ((v + g) / along / along - 1 / v)
    if low <= x:
        along, against, slope = x + u, max(left - q * x, 0.0) / p + v, q * d / p
        return (1 + slope * (along + g) / against) / against - (slope + (against + g) / along) / along
    total = left + q * u + p * v
    t = g / total
    return q * (d - 1) * t / total * (1 + (1 + 2 * p * q * t) / math.sqrt((1 + q * t) * (1 + p * t)))


def _relative(size: float, unit: float) -> float:
    ratio = size / unit
    return ratio if ratio >= TINY else 0.0


def _scale(noise: NoisePair, unit: float) -> NoisePair:
    return NoisePair(
        *(ClassNoise(part.along * unit, part.across * unit) for part in (noise.negatives, noise.positives))
    )


def _within(classes: Classes, noise: NoisePair, budget: float) -> NoisePair:
    """Return the noise, shrunk by as much as rounding made it exceed the budget.

    Where numbers have no digits left, all of it is taken away.
    """
    excess = 1e-15
    while (spent := power(classes, noise)) > budget:
        noise = _scale(noise, max(0.0, budget / spent - excess))
        excess *= 8
    return noise
