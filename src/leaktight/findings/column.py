"""Columns: what a table says of each row, and how a reading is written in it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from leaktight.core.metric import quantity_of
from leaktight.core.record import Status

if TYPE_CHECKING:
    from leaktight.core.metric import Reading
    from leaktight.findings.rows import Row

NOTHING = "-"


class Column(NamedTuple):
    """One column of a table of rows.

    Args:
        title: its heading.
        text: what it says of a row; `NOTHING` where there is nothing to say.
        readings: the names of the readings that it shows, so that no other column repeats them.
    """

    title: str
    text: Callable[[Row], str]
    readings: tuple[str, ...] = ()


def interval(reading: Reading | None, digits: int = 1) -> str:
    """Write a number with its interval, if it has one, by a fixed number of digits.

    Example:
        >>> from leaktight.core.metric import Reading
        >>> interval(Reading(name="psnr", value=20, low=18, high=22)), interval(None)
        ('20.0 (18.0 to 22.0)', '-')
    """
    return format_reading(reading, lambda value: f"{value:.{digits}f}")


def format_reading(reading: Reading | None, number: Callable[[float], str]) -> str:
    """Write a reading with its interval, if it has one.

    Example:
        >>> from leaktight.core.display import percent
        >>> from leaktight.core.metric import Reading
        >>> format_reading(Reading(name="accuracy", value=0.5, low=0.4, high=0.6), percent)
        '50 % (40 to 60)'
    """
    if reading is None:
        return NOTHING
    if reading.low is None or reading.high is None:
        return number(reading.value)
    ends = [number(end).removesuffix(" %") for end in (reading.low, reading.high)]
    return f"{number(reading.value)} ({ends[0]} to {ends[1]})"


def show_reading(reading: Reading | None) -> str:
    """Write a reading with its interval, if it has one, by the digits of its metric.

    Example:
        >>> from leaktight.core.metric import Reading
        >>> show_reading(Reading(name="psnr", value=20, low=18, high=22))
        '20.0 (18.0 to 22.0)'
    """
    return NOTHING if reading is None else format_reading(reading, quantity_of(reading.name).number)


def value_of(reading: Reading | None) -> str:
    """Write a reading without its interval, by the digits of its metric."""
    return NOTHING if reading is None else quantity_of(reading.name).number(reading.value)


def result(row: Row, reading: Reading | None) -> str:
    """Write what a row came to, or why it came to nothing."""
    return show_reading(reading) if row.counts.get(Status.DONE) else row.status


def chance(reading: Reading | None) -> str:
    """Write what guessing gets, if that is known, by the digits of the metric."""
    if reading is None or reading.chance is None:
        return NOTHING
    return quantity_of(reading.name).number(reading.chance)
