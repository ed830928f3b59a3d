"""Numbers of tables as texts: the same digits on the terminal and on the page."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from leaktight.core.metric import quantity_of
from leaktight.papers.row import Row

NOTHING = "-"


def format_of(column: str, rows: Sequence[Row]) -> Callable[[object], str]:
    """Return how the numbers of a column are written: with as many digits after the point each.

    They are those of the metric of that name. Else the largest number has three digits in all; where numbers differ by
    orders of magnitude, each has three of its own.

    Args:
        column: its name.
        rows: all that stand in it, ours and the published ones.

    Example:
        >>> text = format_of("auc", [{"auc": 0.5}, {"auc": 0.987}])
        >>> text(0.5), text(0.987), text(None), text("top-k")
        ('0.500', '0.987', '-', 'top-k')
    """
    values = [abs(value) for row in rows if isinstance(value := row.get(column), float) and math.isfinite(value)]
    digits = quantity_of(column).digits
    sizes = [value for value in values if value]
    if digits is None or quantity_of(column).unit == "%":
        digits = max(0, 2 - math.floor(math.log10(max(sizes)))) if sizes else 0
    if sizes and min(sizes) < 0.5 * 10**-digits:
        return significant
    return lambda value: f"{value + 0.0:.{digits}f}" if isinstance(value, float) else significant(value)


def significant(value: object) -> str:
    """Write a value by itself: a number by three significant digits."""
    if value is None:
        return NOTHING
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def around(value: object, low: object, high: object, text: Callable[[object], str] = significant) -> str:
    """Write a number with its interval, if it has one.

    Example:
        >>> around(0.5, 0.25, 0.75), around(0.5, None, None)
        ('0.5 (0.25 to 0.75)', '0.5')
    """
    return text(value) if low is None or high is None else f"{text(value)} ({text(low)} to {text(high)})"
