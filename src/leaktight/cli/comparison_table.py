"""A reproduction on the terminal: whether the claims hold, then each of our numbers beside the published one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from leaktight.cli.text_table import Group, TextTable, print_lines, print_text
from leaktight.core.display import duration
from leaktight.papers.check import Check, tally
from leaktight.papers.number_text import around, format_of, significant
from leaktight.papers.paper import Paper
from leaktight.papers.reproduction import Reproduction
from leaktight.papers.row import CLAIM, Row

WIDE = 200
MOST_PARTS = 3
"""A table comes in no more parts than this only to show intervals, which the file has too."""
_ENDS = ("_low", "_high")
_SCALES = {
    "smoke": "Smoke shows that everything runs; use --scale small to judge.",
    "small": "Small is cut to the hour: read it for directions, not for digits.",
    "paper": "This is the whole experiment.",
}


def show(paper: Paper[Any], done: Reproduction, console: Console | None = None) -> None:
    """Print how many claims hold, every table, the checks, and what a reader must know.

    Args:
        paper: which one; it names the columns by which rows belong together.
        done: what came of it.
        console: where to print; by default standard output.
    """
    where = console or Console()
    if not where.is_terminal:
        # A file has no width; cut columns would lose numbers.
        where.width = WIDE
    print_text(where, f"{paper.title}, scale {done.scale}, seed {done.seed}, {duration(done.seconds)}")
    print_text(where, f"{tally(done.checks)} {_SCALES[done.scale]}", style="bold")
    for name, rows in done.tables.items():
        published = done.published.get(name, [])
        print_text(where, f"\n{_words(name)}:")
        print_lines(where, table(rows, published, paper.keys[name], where.width))
        for row in published:
            if CLAIM in row:
                print_text(where, f"Published: {row[CLAIM]} ({row['source']})")
    print_text(where, "\nChecks:")
    for check in done.checks:
        print_text(
            where,
            f"- {_verdict(check)}: {check.name} is "
            f"{around(check.value, check.low, check.high)}, expected {check.expected}",
        )
        if check.why:
            print_text(where, f"  {check.why} {check.unless}")
    for remark in done.remarks:
        print_text(where, f"\n{remark}")


def table(rows: Sequence[Row], published: Sequence[Row], keys: Sequence[str], width: int) -> list[Text]:
    """Return our numbers, each with a column more where one of them was published, as lines.

    A number and the ends of its interval are one column. What names a row is never cut: keys that would leave no room
    for numbers stand on a line of their own above the rows that share them. Intervals are left out where they would
    make many parts of the table.

    Args:
        rows: ours.
        published: the published ones.
        keys: the columns that name a row.
        width: how wide lines may be.
    """
    known = {tuple(row.get(key) for key in keys): row for row in published if CLAIM not in row}
    others = [known.get(tuple(row[key] for key in keys), {}) for row in rows]
    numbers = _numbers(rows, keys)
    formats = {column: format_of(column, [*rows, *others]) for column in numbers}
    titles = []
    for column in numbers:
        shared = any(other.get(column) is not None for other in others)
        titles += [_words(column), *([f"{_words(column)}, published"] if shared else [])]

    def cells(row: Row, other: Row, intervals: bool) -> list[str]:
        found = []
        for column in numbers:
            low, high = (row.get(column + end) if intervals else None for end in _ENDS)
            found.append(around(row[column], low, high, formats[column]))
            if f"{_words(column)}, published" in titles:
                found.append(formats[column](other.get(column)))
        return found

    names = [[significant(row[key]) for key in keys] for row in rows]
    layout = TextTable([], [])
    for intervals in (True, False):
        numbered = [cells(row, other, intervals) for row, other in zip(rows, others, strict=True)]
        for apart in range(len(keys) + 1):
            layout = TextTable(
                [*map(_words, keys[apart:]), *titles], _groups(keys, names, numbered, apart), len(keys) - apart
            )
            if layout.fits(width):
                break
        if layout.parts(width) <= MOST_PARTS:
            break
    return layout.lines(width)


def _groups(
    keys: Sequence[str], names: Sequence[Sequence[str]], numbers: Sequence[Sequence[str]], apart: int
) -> list[Group]:
    """Return rows below what they share of some of the first keys."""
    groups: dict[str, list[list[str]]] = {}
    for name, cells in zip(names, numbers, strict=True):
        heading = ", ".join(f"{_words(key)} {part}" for key, part in zip(keys, name[:apart], strict=False))
        groups.setdefault(heading, []).append([*name[apart:], *cells])
    return [Group(heading, rows) for heading, rows in groups.items()]


def _numbers(rows: Sequence[Row], keys: Sequence[str]) -> list[str]:
    return [
        column
        for column in (rows[0] if rows else {})
        if column not in keys and not column.endswith(_ENDS) and any(row[column] is not None for row in rows)
    ]


def _verdict(check: Check) -> str:
    """Say whether a claim holds, whether its interval leaves that open, or that there is no number."""
    if not check.undecided:
        return check.word
    return f"undecided, the value {'holds' if check.holds else 'does not hold'}"


def _words(column: str) -> str:
    return column.replace("_", " ")
