"""A reproduction on the terminal: each of our numbers beside the published one, then the checks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from leaktight.papers.check import Check
from leaktight.papers.paper import Paper
from leaktight.papers.reproduction import Reproduction
from leaktight.papers.row import CLAIM, Row

WIDE = 200
NOTHING = "-"
MANY = 8
"""With more than this it is shown in parts, each with the columns that name a row."""
_ENDS = ("_low", "_high")


def show(paper: Paper[Any], done: Reproduction, console: Console | None = None) -> None:
    """Print every table, then the checks, then what a reader must know.

    Args:
        paper: which one; it names the columns by which rows belong together.
        done: what came of it.
        console: where to print; by default standard output.
    """
    where = console or Console()
    if not where.is_terminal:
        # A file has no width; cut columns would lose numbers.
        where.width = WIDE
    _say(where, f"{paper.title}, scale {done.scale}, seed {done.seed}, {done.seconds:.0f} seconds")
    for name, rows in done.tables.items():
        published = done.published.get(name, [])
        for part in parts(name, rows, published, paper.keys[name], where):
            where.print(part)
        for row in published:
            if CLAIM in row:
                _say(where, f"Published: {row[CLAIM]} ({row['source']})")
    _say(where, "\nChecks:")
    for check in done.checks:
        _say(
            where,
            f"- {_verdict(check)}: {check.name} is {_around(check.value, check.low, check.high)}, expected "
            f"{check.expected}",
        )
    for remark in done.remarks:
        _say(where, f"\n{remark}")


def parts(name: str, rows: Sequence[Row], published: Sequence[Row], keys: Sequence[str], where: Console) -> list[Table]:
    """Return a table, or several with some of the columns each if there are too many; with intervals where they fit."""
    numbers = _numbers(rows, keys)
    count = max(1, math.ceil(len(numbers) / MANY))
    size = math.ceil(len(numbers) / count)
    found = []
    for part in range(count):
        title = name if count == 1 else f"{name} ({part + 1} of {count})"
        only = numbers[part * size : (part + 1) * size]
        whole = table(title, rows, published, keys, only)
        # Measured with room to spare: no table is measured wider than the room it is given.
        fits = where.measure(whole, options=where.options.update(width=10 * WIDE)).maximum <= where.width
        found.append(whole if fits else table(title, rows, published, keys, only, intervals=False))
    return found


def table(
    name: str,
    rows: Sequence[Row],
    published: Sequence[Row],
    keys: Sequence[str],
    numbers: Sequence[str],
    intervals: bool = True,
) -> Table:
    """Return a table of ours with a column more for each number that was published.

    A number and the ends of its interval become one column; without intervals, which the file has all, it takes less
    room.
    """
    known = {tuple(row.get(key) for key in keys): row for row in published if CLAIM not in row}
    shared = [column for column in numbers if any(column in row for row in known.values())]
    found = Table(title=name, title_justify="left")
    for key in keys:
        found.add_column(_words(key), justify="right" if rows and not isinstance(rows[0][key], str) else "left")
    for column in numbers:
        found.add_column(_words(column), justify="right", no_wrap=True)
        if column in shared:
            found.add_column(f"{_words(column)}, published", justify="right")
    for row in rows:
        other = known.get(tuple(row[key] for key in keys), {})
        cells = [_text(row[key]) for key in keys]
        for column in numbers:
            cells.append(_show_measured(row, column) if intervals else _text(row[column]))
            if column in shared:
                cells.append(_text(other.get(column)))
        found.add_row(*cells)
    return found


def _numbers(rows: Sequence[Row], keys: Sequence[str]) -> list[str]:
    return [
        column
        for column in (rows[0] if rows else {})
        if column not in keys and not column.endswith(_ENDS) and any(row[column] is not None for row in rows)
    ]


def _show_measured(row: Row, column: str) -> str:
    return _around(row[column], *(row.get(column + end) for end in _ENDS))


def _around(value: object, low: object, high: object) -> str:
    """Return a number with its interval, if it has one."""
    return _text(value) if low is None or high is None else f"{_text(value)} ({_text(low)} to {_text(high)})"


def _verdict(check: Check) -> str:
    """Say whether a claim holds, and whether its interval leaves that open."""
    said = "holds" if check.holds else "does not hold"
    return f"undecided, the value {said}" if check.undecided else said


def _text(value: object) -> str:
    if value is None:
        return NOTHING
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _words(column: str) -> str:
    return column.replace("_", " ")


def _say(where: Console, text: str) -> None:
    where.print(text, markup=False, highlight=False, soft_wrap=not where.is_terminal)
