"""Norms: how long the gradients of positives and negatives are under each defence, side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from leaktight.core.defence import is_undefended
from leaktight.core.display import capital
from leaktight.findings.display import name_of
from leaktight.findings.rows import Row
from leaktight.metrics.norm_histogram import BINS, LOWEST, WIDTH
from leaktight.report.chart import Chart, Figure, Panel, Point, Series, scale
from leaktight.report.page import Page, Section

CLASSES = {"norm_negative": ("negatives", "negative"), "norm_positive": ("positives", "positive")}
"""The readings of each class, what it is called, and its colour: another one than that of any defence."""
MOST_FIGURES = 12
_JOINED = 2

Shares = Mapping[str, Sequence[float]]
"""For each class, how much of it lies in each bin."""


def norms_section(page: Page) -> Section | None:
    """Show a histogram for each defence in the setting that leaks most undefended.

    None without counts, as in a redacted report.
    """
    found = _by_defence(page)
    if not found:
        return None
    scenarios = {row.scenario for row, _ in found}
    ends = _ends([shares for _, shares in found])
    most = max(height for _, shares in found for heights in shares.values() for height in heights)
    figures = []
    for number, (row, shares) in enumerate(found[:MOST_FIGURES]):
        where = f", scenario {row.scenario}" if len(scenarios) > 1 else ""
        caption = f"{capital(name_of(row.defence))}{where}"
        figures.append(Figure(f"plot-norms-{number}", caption, chart_of(shares, ends, most, caption)))
    values = {"figures": figures, "setting": found[0][0].setting, "left": len(found) - len(figures)}
    return Section("norms", "Gradient norms by class", "norms.html", values)


def _by_defence(page: Page) -> list[tuple[Row, Shares]]:
    """Return one row for each scenario and defence with its counts.

    Every attack on the same messages holds the same counts.
    """
    leaky = {
        j.scenario: (j.worst.batch_size, j.worst.stage)
        for j in page.summary.judgements
        if is_undefended(j.defence) and j.charted
    }
    found: dict[tuple[int, str], tuple[Row, Shares]] = {}
    for row in page.summary.rows:
        shares = shares_of(row)
        if shares and leaky.get(row.scenario, (row.batch_size, row.stage)) == (row.batch_size, row.stage):
            found.setdefault((row.scenario, row.defence.key), (row, shares))
    return list(found.values())


def shares_of(row: Row) -> Shares:
    """Return the shares of each class, over all seeds; empty if there are no counts.

    Pooled over seeds, a reading holds one seed's counts after the other's.
    """
    found: dict[str, list[float]] = {}
    for name in CLASSES:
        reading = row.reading(name)
        if reading is not None and reading.each and len(reading.each) % BINS == 0:
            counts = [sum(reading.each[place::BINS]) for place in range(BINS)]
            joined = [sum(counts[place : place + _JOINED]) for place in range(0, BINS, _JOINED)]
            found[name] = [count / max(sum(joined), 1) for count in joined]
    return found


def chart_of(shares: Shares, ends: tuple[int, int], most: float, name: str) -> Chart:
    """Return the shares of both classes over the relative norm, between two bins.

    Args:
        shares: what is drawn.
        ends: the first bin, and that after the last.
        most: the largest share of any chart beside it: all have the same height, so that shapes can be compared.
        name: whose norms they are.
    """
    first, last = ends
    edges = [10 ** (LOWEST + WIDTH * _JOINED * place) for place in range(first, last + 1)]
    series = tuple(
        Series(words, colour, _steps(edges, [100 * height for height in shares[kind][first:last]]), "", filled=True)
        for kind, (words, colour) in CLASSES.items()
        if kind in shares
    )
    x = scale("norm / mean of its step", edges, log=True)._replace(low=edges[0], high=edges[-1])
    x = x._replace(ticks=tuple((value, text) for value, text in x.ticks if edges[0] <= value <= edges[-1]))
    y = scale("share of the class", [0.0, 100 * most], " %", most=5)
    about = f"Gradient norms of positives and of negatives, {name}: the further apart, the more a length tells."
    return Chart(x, (Panel(y, series, 140),), about)


def _steps(edges: Sequence[float], heights: Sequence[float]) -> tuple[Point, ...]:
    """Return the outline of a histogram."""
    sides = zip(edges, edges[1:], heights, strict=False)
    return tuple(Point(edge, height) for left, right, height in sides for edge in (left, right))


def _ends(found: Sequence[Shares]) -> tuple[int, int]:
    """Return between which bins anything lies, in any of them."""
    used = [place for shares in found for heights in shares.values() for place, height in enumerate(heights) if height]
    return (max(0, min(used) - 1), min(BINS // _JOINED, max(used) + 2)) if used else (0, BINS // _JOINED)
