"""Correlation: how well one number of a row predicts another, by Pearson's coefficient."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

from scipy.stats import pearsonr

from leaktight.papers.row import Row, interval_columns, number

LEAST = 3
_SAME = 1e-9


@dataclasses.dataclass(frozen=True)
class Correlation:
    r"""Pearson's coefficient of n pairs, with its test against 0.

    Args:
        r: the coefficient.
        low: the lower end of its 95 % interval, by Fisher's \(\operatorname{artanh}\); -1 of three pairs.
        high: the upper end.
        t: \(R \sqrt{(n - 2) / (1 - R^2)}\).
        p: how likely so large an \(|R|\) is where there is no correlation.
        n: how many pairs.
    """

    r: float
    low: float
    high: float
    t: float
    p: float
    n: int


def pearson(ones: Sequence[float], others: Sequence[float]) -> Correlation | None:
    """Return the correlation of two lists; None for fewer than three pairs, or where one of them does not vary.

    Layers of one network are not an independent sample: interval and p-value are reckoned as the paper does, and mean
    no more.

    Example:
        >>> found = pearson([1.0, 2.0, 3.0, 4.0], [1.0, 3.0, 2.0, 4.0])
        >>> round(found.r, 2), round(found.t, 3), found.n
        (0.8, 1.886, 4)

    References:
        Mo et al., Layer-wise Characterization of Latent Information Leakage in Federated Learning, 2021, Table 1.
    """
    if len(ones) < LEAST or any(_constant(values) for values in (ones, others)):
        return None
    result = pearsonr(ones, others)
    r, count = float(result.statistic), len(ones)
    left = 1 - r * r
    if left <= _SAME:
        return Correlation(r, r, r, math.copysign(math.inf, r), float(result.pvalue), count)
    ends = result.confidence_interval(0.95)
    return Correlation(
        r, float(ends.low), float(ends.high), r * math.sqrt((count - 2) / left), float(result.pvalue), count
    )


def of_columns(rows: Sequence[Row], one: str, other: str) -> Correlation | None:
    """Return the correlation of two columns, over the rows that have both.

    Example:
        >>> of_columns([{"a": 1, "b": 2}, {"a": 2, "b": 4}, {"a": 3, "b": 7}, {"a": 9, "b": None}], "a", "b").n
        3
    """
    pairs = [(number(row, one), number(row, other)) for row in rows]
    known = [(first, second) for first, second in pairs if first is not None and second is not None]
    return pearson([first for first, _ in known], [second for _, second in known])


def correlation_columns(correlation: Correlation | None, name: str = "r") -> Row:
    """Return a correlation as columns: the coefficient with its interval, t, p-value and the number of pairs.

    Example:
        >>> correlation_columns(None)
        {'r': None, 'r_low': None, 'r_high': None, 't': None, 'p': None, 'n': 0}
    """
    if correlation is None:
        return {**interval_columns(name, None, None, None), "t": None, "p": None, "n": 0}
    t = correlation.t if math.isfinite(correlation.t) else None
    return {
        **interval_columns(name, correlation.r, correlation.low, correlation.high),
        "t": t,
        "p": correlation.p,
        "n": correlation.n,
    }


def _constant(values: Sequence[float]) -> bool:
    return max(values) - min(values) <= _SAME * max(map(abs, values))
