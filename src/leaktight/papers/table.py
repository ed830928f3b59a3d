"""Tables: our rows beside the published ones, as texts and as a chart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from leaktight.core.display import capital
from leaktight.papers.row import CLAIM, Row, number
from leaktight.report.chart import Chart, Panel, Point, Scale, Series, named, scale

NOTHING = "-"
MOST_PANELS, MOST_LINES, MOST_DOTS = 3, 8, 30
LEAST_STEPS = 3
"""How many values of a number make a line over it."""
_ENDS = ("_low", "_high")


class Table(NamedTuple):
    """A table as a page shows it.

    Args:
        title: what it is of.
        heads: the name of each column.
        lines: the text of each cell.
        claims: what the paper says of it in words.
        is_published: whether some of the numbers were published.
        chart: our numbers, drawn; None if there is nothing to draw, or too much.
    """

    title: str
    heads: Sequence[str]
    lines: Sequence[Sequence[str]]
    claims: Sequence[str]
    is_published: bool
    chart: Chart | None


def table_of(name: str, rows: Sequence[Row], published: Sequence[Row], keys: Sequence[str]) -> Table:
    """Return our rows beside the published ones, where a column has any.

    Args:
        name: that of the table.
        rows: ours.
        published: the published ones.
        keys: the columns that name a row.
    """
    known = {tuple(row.get(key) for key in keys): row for row in published if CLAIM not in row}
    columns = [
        column
        for column in (rows[0] if rows else {})
        if column not in keys and not column.endswith(_ENDS) and any(row[column] is not None for row in rows)
    ]
    ours = {tuple(row[key] for key in keys) for row in rows}
    shared = [
        column
        for column in columns
        if any(row.get(column) is not None for place, row in known.items() if place in ours)
    ]
    heads = [_words(key) for key in keys]
    for column in columns:
        heads += [_words(column), f"{_words(column)}, published"] if column in shared else [_words(column)]
    lines = []
    for row in rows:
        other = known.get(tuple(row[key] for key in keys), {})
        cells = [_text(row[key]) for key in keys]
        for column in columns:
            cells.append(around(row[column], *(row.get(column + end) for end in _ENDS)))
            cells += [_text(other.get(column))] if column in shared else []
        lines.append(cells)
    drawn = [*shared, *(column for column in columns if column not in shared)]
    drawn = [column for column in drawn if any(number(row, column) is not None for row in rows)]
    return Table(
        title=capital(_words(name)),
        heads=heads,
        lines=lines,
        claims=[f"{row[CLAIM]} ({row['source']})" for row in published if CLAIM in row],
        is_published=bool(shared),
        chart=chart_of(rows, known, keys, drawn[:MOST_PANELS]),
    )


def chart_of(
    rows: Sequence[Row], known: dict[tuple[Any, ...], Row], keys: Sequence[str], columns: Sequence[str]
) -> Chart | None:
    """Return a chart of a table: lines over a number that names rows, if there is one, else a dot for each row.

    Ours are filled, with 95 % intervals; published numbers are crosses. None if there is nothing to draw, or too much.

    Args:
        rows: our table.
        known: the published rows by their keys.
        keys: the columns that name a row.
        columns: the numbers to draw, a panel each.
    """
    if not rows or not columns:
        return None
    swept = next((key for key in reversed(keys) if _is_swept(rows, key)), None)
    if swept is not None:
        others = [key for key in keys if key != swept]
        groups: dict[tuple[Any, ...], list[Row]] = {}
        for row in rows:
            groups.setdefault(tuple(row[key] for key in others), []).append(row)
        if len(groups) <= MOST_LINES:
            return _lines(groups, known, keys, others, swept, columns)
    return _dots(rows, known, keys, columns) if len(rows) <= MOST_DOTS else None


def _is_swept(rows: Sequence[Row], key: str) -> bool:
    values = {row[key] for row in rows}
    return len(values) >= LEAST_STEPS and all(number(row, key) is not None for row in rows)


def _lines(
    groups: dict[tuple[Any, ...], list[Row]],
    known: dict[tuple[Any, ...], Row],
    keys: Sequence[str],
    others: Sequence[str],
    swept: str,
    columns: Sequence[str],
) -> Chart:
    steps = sorted({value for rows in groups.values() for row in rows if (value := number(row, swept)) is not None})
    telling = [place for place, _ in enumerate(others) if len({group[place] for group in groups}) > 1]
    panels = []
    for column in columns:
        series = []
        for place, (group, rows) in enumerate(groups.items()):
            name = ", ".join(_text(group[at]) for at in telling) or _words(column)
            points, published = [], []
            for row in sorted(rows, key=lambda row: number(row, swept) or 0.0):
                at = float(steps.index(number(row, swept) or 0.0))
                points += _point(row, column, at, f"{name}, {_words(swept)} {_text(row[swept])}")
                other = known.get(tuple(row[key] for key in keys), {})
                published += _published(other, column, at, name)
            colour = f"colour{place % 8}"
            series.append(Series(name, colour, tuple(points), "circle", "solid", tag=name))
            series += [Series("", colour, tuple(published), "cross", "")] if published else []
        panels.append(Panel(_scale(column, series), tuple(series), 170))
    x = named(_words(swept), [f"{step:g}" for step in steps])
    return Chart(x, tuple(panels), f"{', '.join(map(_words, columns))} over {_words(swept)}; the numbers are below.")


def _dots(
    rows: Sequence[Row], known: dict[tuple[Any, ...], Row], keys: Sequence[str], columns: Sequence[str]
) -> Chart | None:
    """Return a row of dots for each line of the table, of the first number alone: others may have another unit."""
    column = columns[0]
    telling = [key for key in keys if len({row[key] for row in rows}) > 1] or list(keys)
    names = [", ".join(_text(row[key]) for key in telling) for row in rows]
    ours, published = [], []
    for place, row in enumerate(rows):
        height = float(len(rows) - 1 - place)
        ours += [
            point._replace(x=point.y, y=height, left=point.low, right=point.high, low=None, high=None)
            for point in _point(row, column, 0.0, names[place])
        ]
        other = known.get(tuple(row[key] for key in keys), {})
        published += [point._replace(x=point.y, y=height) for point in _published(other, column, 0.0, names[place])]
    values = [end for point in (*ours, *published) for end in (point.x, point.left, point.right) if end is not None]
    if not values:
        return None
    ticks = tuple((float(len(rows) - 1 - place), name[:34]) for place, name in enumerate(names))
    series = [Series("ours", "colour0", tuple(ours), "circle", "")]
    series += [Series("published", "colour1", tuple(published), "cross", "")] if published else []
    y = Scale(_words(column), -0.6, len(rows) - 0.4, ticks)
    return Chart(scale("", values), (Panel(y, tuple(series), 20 * len(rows) + 16),), f"{_words(column)} of each row.")


def _scale(column: str, series: Sequence[Series]) -> Scale:
    ends = [
        end for one in series for point in one.points for end in (point.y, point.low, point.high) if end is not None
    ]
    return scale(_words(column), ends, most=5)


def _point(row: Row, column: str, at: float, name: str) -> list[Point]:
    value = number(row, column)
    if value is None:
        return []
    low, high = (number(row, column + end) for end in _ENDS)
    tip = f"{name}\n{_words(column)}: {around(value, low, high)}"
    return [Point(at, value, low, high, tip=tip)]


def _published(row: Row, column: str, at: float, name: str) -> list[Point]:
    value = number(row, column)
    return [] if value is None else [Point(at, value, tip=f"{name}\n{_words(column)}, published: {_text(value)}")]


def around(value: object, low: object, high: object) -> str:
    """Return a number with its interval, if it has one."""
    return _text(value) if low is None or high is None else f"{_text(value)} ({_text(low)} to {_text(high)})"


def _text(value: object) -> str:
    if value is None:
        return NOTHING
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _words(column: str) -> str:
    return column.replace("_", " ")
