"""Norms: how long the gradients of positives and negatives are under each defence, side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import plotly.graph_objects as go

from leaktight.core.defence import is_undefended
from leaktight.core.display import capital
from leaktight.findings.display import name_of
from leaktight.findings.rows import Row
from leaktight.metrics.norm_histogram import BINS, LOWEST, WIDTH
from leaktight.report.page import Page, Section
from leaktight.report.plots import COLOURS, layout, plain_figure

CLASSES = {"norm_negative": ("negatives", COLOURS[0]), "norm_positive": ("positives", COLOURS[1])}
MOST_FIGURES = 12
_JOINED = 2

Shares = Mapping[str, Sequence[float]]
"""For each class, how much of it lies in each bin."""


def norms_section(page: Page) -> Section | None:
    """Show a histogram for each defence in the setting that leaks most undefended.

    None without counts, as in a redacted report.
    """
    plots: dict[str, dict[str, Any]] = {}
    captions: dict[str, str] = {}
    found = _by_defence(page)
    scenarios = {row.scenario for row, _ in found}
    ends = _ends([shares for _, shares in found])
    for number, (row, shares) in enumerate(found[:MOST_FIGURES]):
        name = f"plot-norms-{number}"
        plots[name] = figure_of(shares, ends)
        where = f", scenario {row.scenario}" if len(scenarios) > 1 else ""
        captions[name] = f"{capital(name_of(row.defence))}{where}"
    if not plots:
        return None
    values = {"captions": captions, "setting": found[0][0].setting, "left": len(found) - len(captions)}
    return Section("norms", "Gradient norms by class", "norms.html", values, plots)


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


def figure_of(shares: Shares, ends: tuple[int, int]) -> dict[str, Any]:
    """Return the shares of both classes over the relative norm, between two bins."""
    figure = go.Figure()
    first, last = ends
    edges = [10 ** (LOWEST + WIDTH * _JOINED * place) for place in range(first, last + 1)]
    for name, heights in shares.items():
        words, colour = CLASSES[name]
        shown = [100 * height for height in heights[first:last]]
        figure.add_trace(
            go.Scatter(
                name=words,
                x=edges,
                y=[*shown, shown[-1]],
                mode="lines",
                line={"shape": "hv", "color": colour, "width": 1.5},
                fill="tozeroy",
                fillcolor=f"{colour}44",
                hovertemplate=f"{words}: %{{y:.1f}} % at %{{x:.2g}}<extra></extra>",
            )
        )
    figure.update_layout(**layout(height=260))
    figure.update_xaxes(title_text="norm / mean of its step", type="log", dtick=1)
    figure.update_yaxes(title_text="share of the class", ticksuffix=" %", rangemode="tozero")
    return plain_figure(figure)


def _ends(found: Sequence[Shares]) -> tuple[int, int]:
    """Return between which bins anything lies, in any of them."""
    used = [place for shares in found for heights in shares.values() for place, height in enumerate(heights) if height]
    return (max(0, min(used) - 1), min(BINS // _JOINED, max(used) + 2)) if used else (0, BINS // _JOINED)
