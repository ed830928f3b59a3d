"""Rows: the lines of our tables and of the published ones, and how numbers with intervals get in and out of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import fmean, stdev

from scipy.special import stdtrit

from leaktight.core.metric import Reading
from leaktight.papers.comparison import difference

Entry = str | int | float | bool | None
Row = dict[str, Entry]
"""One flat line of a table."""
Tables = dict[str, list[Row]]

LEVEL = 0.95
CLAIM = "claim"
"""The column of a published table that was only drawn or described: each row holds a sentence and its source."""


def claims(*sentences: tuple[str, str]) -> list[Row]:
    """Return a published table of sentences, each with its source."""
    return [{CLAIM: sentence, "source": source} for sentence, source in sentences]


def number(row: Row, column: str) -> float | None:
    """Return a column's number; None if the row has none there."""
    value = row.get(column)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def reading_of(row: Row, column: str) -> Reading | None:
    """Return a column's number with its interval; None if the row has none there."""
    value = number(row, column)
    if value is None:
        return None
    return Reading(name=column, value=value, low=number(row, f"{column}_low"), high=number(row, f"{column}_high"))


def rows_where(rows: Sequence[Row], **wanted: Entry) -> list[Row]:
    """Return the rows whose columns have these values; perhaps none.

    Example:
        >>> rows_where([{"a": 1, "b": 2}, {"a": 1, "b": 3}], b=3)
        [{'a': 1, 'b': 3}]
    """
    return [row for row in rows if all(row.get(name) == value for name, value in wanted.items())]


def value_at(rows: Sequence[Row], column: str, **wanted: Entry) -> Reading | None:
    """Return a column of the first row whose other columns have these values; None if there is none."""
    matches = rows_where(rows, **wanted)
    return reading_of(matches[0], column) if matches else None


def groups(rows: Sequence[Row], *keys: str) -> Iterator[tuple[tuple[str, ...], list[Row]]]:
    """Give the rows that agree in some columns together, after what they agree in.

    Example:
        >>> [(key, len(rows)) for key, rows in groups([{"a": 1}, {"a": 2}, {"a": 1}], "a")]
        [(('1',), 2), (('2',), 1)]
    """
    for place in dict.fromkeys(tuple(str(row[key]) for key in keys) for row in rows):
        yield place, [row for row in rows if tuple(str(row[key]) for key in keys) == place]


def columns(name: str, reading: Reading | None) -> Row:
    """Return a reading as three columns: its value and the ends of its interval; None where there is none.

    Example:
        >>> columns("accuracy", Reading(name="accuracy", value=0.5, low=0.4, high=0.6))
        {'accuracy': 0.5, 'accuracy_low': 0.4, 'accuracy_high': 0.6}
    """
    low, high = (reading.low, reading.high) if reading else (None, None)
    return interval_columns(name, reading.value if reading else None, low, high)


def interval_columns(name: str, value: float | None, low: float | None, high: float | None) -> Row:
    """Return a number and the ends of its interval as three columns; what is not finite is not a number of JSON."""
    return {name: _finite(value), f"{name}_low": _finite(low), f"{name}_high": _finite(high)}


def over_seeds(name: str, values: Iterable[float], *, share: bool = False) -> Row:
    r"""Return the mean over seeds as three columns with its interval; one seed alone has none.

    The interval is \(\bar x \pm t_{0.975, n-1} s / \sqrt n\).

    That of a share ends at 0 and at 1. Seeds that all agree give an interval of no width, which says nothing of what
    happens more rarely.

    Example:
        >>> {name: round(value, 3) for name, value in over_seeds("auc", [0.70, 0.71, 0.72]).items()}
        {'auc': 0.71, 'auc_low': 0.685, 'auc_high': 0.735}
        >>> over_seeds("auc", [])
        {'auc': None, 'auc_low': None, 'auc_high': None}
        >>> over_seeds("recognised", [0.0, 1.0], share=True)
        {'recognised': 0.5, 'recognised_low': 0.0, 'recognised_high': 1.0}
    """
    numbers = list(values)
    if not numbers or not all(map(math.isfinite, numbers)):
        return interval_columns(name, None, None, None)
    mean = fmean(numbers)
    if len(numbers) < 2:
        return interval_columns(name, mean, None, None)
    half = float(stdtrit(len(numbers) - 1, (1 + LEVEL) / 2)) * stdev(numbers) / math.sqrt(len(numbers))
    low, high = mean - half, mean + half
    if share:
        low, high = max(0.0, low), min(1.0, high)
    return interval_columns(name, mean, low, high)


def over_runs(name: str, readings: Iterable[Reading]) -> Row:
    """Return the mean over training runs as three columns with its interval; one run keeps its reading's own.

    Example:
        >>> over_runs("psnr", [Reading(name="psnr", value=7.5, low=7.0, high=8.0)])
        {'psnr': 7.5, 'psnr_low': 7.0, 'psnr_high': 8.0}
        >>> over_runs("psnr", [Reading(name="psnr", value=7.5)] * 2)
        {'psnr': 7.5, 'psnr_low': 7.5, 'psnr_high': 7.5}
    """
    known = list(readings)
    return columns(name, known[0]) if len(known) == 1 else over_seeds(name, [reading.value for reading in known])


def paired_columns(column: str, ones: Mapping[int, Reading], others: Mapping[int, Reading]) -> Row:
    """Return by how much one reading exceeds another, seed by seed; of one seed alone, as if they were independent.

    Example:
        >>> one, other = ({0: Reading(name="auc", value=v), 1: Reading(name="auc", value=v)} for v in (0.75, 0.5))
        >>> paired_columns("more", one, other)
        {'more': 0.25, 'more_low': 0.25, 'more_high': 0.25}
    """
    both = [(reading, others[seed]) for seed, reading in ones.items() if seed in others]
    if len(both) == 1:
        return columns(column, difference(*both[0]))
    return over_seeds(column, [one.value - other.value for one, other in both])


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
