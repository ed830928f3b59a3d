"""Reproductions: what came of a paper's experiment, beside what was published."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from statistics import fmean, stdev
from typing import Literal

from scipy.special import stdtrit

from leaktight.core.metric import Reading
from leaktight.core.value import Value
from leaktight.papers.estimate import Estimate

Scale = Literal["smoke", "small", "paper"]
Cell = str | int | float | bool | None
Row = dict[str, Cell]
"""One flat line of a table."""
Tables = dict[str, list[Row]]

LEVEL = 0.95
CLAIM = "claim"
"""The column of a published table that was only drawn or told: each row holds a sentence and its source."""


class Check(Value):
    """Something the paper says, and whether it holds here.

    Args:
        name: what is claimed, in words.
        value: what was measured; None if it could not be.
        expected: which values hold, in words.
        holds: whether it does. What could not be measured does not.
        low: the lower end of the value's 95 % interval; None if it has none.
        high: the upper end.
        undecided: whether the interval has values that hold and values that do not.
    """

    name: str
    value: float | None
    expected: str
    holds: bool
    low: float | None = None
    high: float | None = None
    undecided: bool = False


class Reproduction(Value):
    """A paper's experiment at one scale: our tables, the published ones under the same names, and the checks.

    Args:
        paper: its name.
        scale: `smoke`, `small` or `paper`.
        seed: what all randomness derives from.
        seconds: how long this run took; what was kept from an earlier one took none.
        tables: our numbers, a list of flat rows for each name.
        published: the published numbers, or the claims of the text where there are only figures.
        checks: what the paper claims, and whether it holds.
        remarks: what a reader of the numbers must know, a sentence or two each.
    """

    paper: str
    scale: Scale
    seed: int
    seconds: float
    tables: Tables
    published: Tables
    checks: tuple[Check, ...]
    remarks: tuple[str, ...] = ()


def judged(name: str, found: Estimate | float | None, expected: str, test: Callable[[float], bool]) -> Check:
    """Return the check that a number passes a test; undecided if the value and the ends of its interval do not agree.

    Example:
        >>> judged("small", Estimate(value=0.05, low=-0.2, high=0.2), "at most 0.1", lambda value: value <= 0.1).undecided
        True
    """
    if not isinstance(found, Estimate):
        return Check(name=name, value=found, expected=expected, holds=found is not None and test(found))
    value, low, high = found.value, found.low, found.high
    answers = {test(each) for each in (value, low, high) if each is not None}
    return Check(name=name, value=value, expected=expected, holds=test(value), low=low, high=high, undecided=len(answers) > 1)


def above(name: str, value: Estimate | float | None, least: float) -> Check:
    """Return the check that a number is above another.

    Example:
        >>> above("two above one", 2 - 1, least=0).holds, above("nothing measured", None, least=0).holds
        (True, False)
    """
    return judged(name, value, f"above {least:g}", lambda each: each > least)


def at_least(name: str, value: Estimate | float | None, least: float) -> Check:
    """Return the check that a number is not below another.

    Example:
        >>> at_least("a point at most", -0.005, least=-0.01).expected
        'at least -0.01'
    """
    return judged(name, value, f"at least {least:g}", lambda each: each >= least)


def at_most(name: str, value: Estimate | float | None, most: float) -> Check:
    """Return the check that a number is not above another.

    Example:
        >>> at_most("small enough", 0.55, most=0.6).holds, at_most("nothing measured", None, most=0.6).holds
        (True, False)
    """
    return judged(name, value, f"at most {most:g}", lambda each: each <= most)


def within(name: str, value: Estimate | float | None, most: float) -> Check:
    """Return the check that a number is no further from 0 than another.

    Example:
        >>> within("almost the same", -0.05, most=0.1).expected
        'between -0.1 and 0.1'
    """
    return judged(name, value, f"between {-most:g} and {most:g}", lambda each: abs(each) <= most)


def estimate(row: Row, column: str) -> Estimate | None:
    """Return a column's number with its interval; None if the row has none there."""
    value = number(row, column)
    if value is None:
        return None
    return Estimate(value=value, low=number(row, f"{column}_low"), high=number(row, f"{column}_high"))


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
    r"""Return the mean over seeds as three columns with its interval, \(\bar x \pm t_{0.975, n-1} s / \sqrt n\); one seed alone has none.

    That of a share ends at 0 and at 1. Seeds that all agree give an interval of no width, which says nothing of what happens more rarely.

    Example:
        >>> {name: round(value, 3) for name, value in over_seeds("auc", [0.70, 0.71, 0.72]).items()}
        {'auc': 0.71, 'auc_low': 0.685, 'auc_high': 0.735}
        >>> over_seeds("auc", [])
        {'auc': None, 'auc_low': None, 'auc_high': None}
        >>> over_seeds("recognised", [0.0, 1.0], share=True)
        {'recognised': 0.5, 'recognised_low': 0.0, 'recognised_high': 1.0}
    """
    found = list(values)
    if not found or not all(map(math.isfinite, found)):
        return interval_columns(name, None, None, None)
    mean = fmean(found)
    if len(found) < 2:
        return interval_columns(name, mean, None, None)
    half = float(stdtrit(len(found) - 1, (1 + LEVEL) / 2)) * stdev(found) / math.sqrt(len(found))
    low, high = mean - half, mean + half
    if share:
        low, high = max(0.0, low), min(1.0, high)
    return interval_columns(name, mean, low, high)


def claims(*sentences: tuple[str, str]) -> list[Row]:
    """Return a published table of sentences, each with its source."""
    return [{CLAIM: sentence, "source": source} for sentence, source in sentences]


def number(row: Row, column: str) -> float | None:
    """Return a column's number; None if the row has none there."""
    value = row.get(column)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def rows_where(rows: Sequence[Row], **wanted: Cell) -> list[Row]:
    """Return the rows whose columns have these values.

    Example:
        >>> rows_where([{"a": 1, "b": 2}, {"a": 1, "b": 3}], b=3)
        [{'a': 1, 'b': 3}]
    """
    return [row for row in rows if all(row.get(name) == value for name, value in wanted.items())]


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
