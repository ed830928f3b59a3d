"""Plots: the trade-off between accuracy and leakage, and leakage over strength.

A figure is plain data for plotly.js, checked by plotly's own classes. Colours of text and lines come from the page's
style sheet, so that one figure serves light, dark and print.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go

from leaktight.core.defence import is_undefended
from leaktight.core.display import capital
from leaktight.core.metric import Reading
from leaktight.findings.display import family_of, name_of, strength_of
from leaktight.findings.kind import Axis, LeakKind
from leaktight.findings.rows import Row
from leaktight.findings.sweep import sweeps
from leaktight.findings.utility import ACCURACY, utility_name, utility_text
from leaktight.findings.verdict import Judgement
from leaktight.report.page import Page, Section
from leaktight.statistics.pooling import high, low

# Okabe and Ito's palette, told apart also by readers with colour blindness; black is left to the undefended point.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c6bb1", "#7f7f7f")
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "triangle-down", "cross", "pentagon", "hexagon")


@dataclasses.dataclass(frozen=True)
class Line:
    """What a plot joins: one defence at several values of one of its numbers, or at the only one that was measured.

    Args:
        name: the defence without that number.
        field: the number's name.
        values: the number, from weak to strong; None where there is none.
        rows: what the strongest attack got at each.
    """

    name: str
    field: str
    values: tuple[float | None, ...]
    rows: tuple[Row, ...]


def lines_of(judged: Sequence[Judgement]) -> list[Line]:
    """Return the lines of a plot.

    A number may be swept anywhere in a defence, in a link of a chain or in what a guard applies.
    """
    rows = {judgement.defence.key: judgement.worst for judgement in judged}
    found = [
        Line(
            sweep.family,
            sweep.field,
            tuple(value for value, _ in sweep.members),
            tuple(rows[d.key] for _, d in sweep.members),
        )
        for sweep in sweeps([judgement.defence for judgement in judged])
    ]
    joined = {row.defence.key for line in found for row in line.rows}
    alone = [judgement.defence for judgement in judged if judgement.defence.key not in joined]
    return found + [
        Line(
            family_of(defence),
            defence.strength.field if defence.strength else "",
            (strength_of(defence),),
            (rows[defence.key],),
        )
        for defence in alone
    ]


def tradeoff_section(page: Page) -> Section | None:
    """Show accuracy against leakage for each defence and strength, and leakage over strength for each kind."""
    plots: dict[str, dict[str, Any]] = {}
    captions: dict[str, str] = {}
    charted = [judgement for judgement in page.summary.judgements if judgement.charted]
    scenarios = {judgement.scenario for judgement in charted}
    for scenario, kind in dict.fromkeys((judgement.scenario, judgement.kind) for judgement in charted):
        judged = [j for j in charted if (j.scenario, j.kind) == (scenario, kind)]
        suffix = f", scenario {scenario}" if len(scenarios) > 1 else ""
        place, leak = f"{scenario}-{kind.kind}", kind.chart
        figure = tradeoff(judged)
        if figure is not None:
            plots[f"plot-tradeoff-{place}"] = figure
            utility = next((j.worst.utility for j in judged if j.worst.utility is not None), None)
            captions[f"plot-tradeoff-{place}"] = f"{capital(utility_name(utility))} against {leak}{suffix}"
        for number, line in enumerate(_sweep_lines(kind, judged)):
            name = f"plot-strength-{place}-{number}"
            plots[name] = over_strength(kind, line)
            captions[name] = f"{capital(line.name)}: {leak} over strength{suffix}"
    if not plots:
        return None
    return Section("trade-off", "Protection against usefulness", "tradeoff.html", {"captions": captions}, plots)


def tradeoff(judged: Sequence[Judgement]) -> dict[str, Any] | None:
    """Return accuracy against what the strongest attack gets of one kind of leak: a line for each kind of defence."""
    placed = [
        (j, drawn)
        for j in judged
        if j.worst.utility is not None and (drawn := j.kind.chart_reading(j.worst)) is not None
    ]
    placed = [(j, drawn) for j, drawn in placed if drawn.name == placed[0][1].name]
    if not placed:
        return None
    kind = placed[0][0].kind
    axis = kind.tradeoff_axis([drawn for _, drawn in placed])
    figure = go.Figure()
    number = 0
    # The undefended point comes last, so that no other covers it.
    for line in sorted(lines_of([j for j, _ in placed]), key=lambda line: is_undefended(line.rows[0].defence)):
        bare = is_undefended(line.rows[0].defence)
        colour, symbol = (
            ("#6b7280", "star") if bare else (COLOURS[number % len(COLOURS)], SYMBOLS[number % len(SYMBOLS)])
        )
        number += not bare
        figure.add_trace(_line(kind, line, colour, symbol, axis.scale))
    figure.update_layout(**layout(height=460))
    use = placed[0][0].worst.utility
    figure.update_xaxes(
        title_text=f"{utility_name(use)} of the trained model", ticksuffix=" %" if _scale(use) > 1 else ""
    )
    figure.update_yaxes(**_settings(axis))
    if axis.guessing is not None:
        figure.add_hline(y=axis.guessing, line={"color": "#6b7280", "dash": "dash", "width": 1.2})
    return plain_figure(figure)


def _settings(axis: Axis) -> dict[str, Any]:
    found = {"title_text": axis.title, "ticksuffix": axis.suffix or None, "range": axis.ends, "dtick": axis.tick}
    return {name: value for name, value in found.items() if value is not None}


def _line(kind: LeakKind, line: Line, colour: str, symbol: str, scale: float) -> go.Scatter:
    utilities = [row.utility for row in line.rows if row.utility is not None]
    leaks = [drawn for row in line.rows if (drawn := kind.chart_reading(row)) is not None]
    return go.Scatter(
        name=line.name,
        x=[_scale(reading) * reading.value for reading in utilities],
        y=[scale * reading.value for reading in leaks],
        error_x=error_bars(utilities, _scale(utilities[0]), colour),
        error_y=error_bars(leaks, scale, colour),
        mode="lines+markers+text",
        textposition="top right",
        cliponaxis=False,
        textfont={"size": 11},
        line={"color": colour, "width": 1.5, "dash": "dot"},
        marker={"color": colour, "symbol": symbol, "size": 15 if symbol == "star" else 10},
        text=["" if value is None else f"{value:g}" for value in line.values],
        customdata=[_hover(kind, row) for row in line.rows],
        hovertemplate="%{customdata}<extra></extra>",
    )


def over_strength(kind: LeakKind, line: Line) -> dict[str, Any]:
    """Return what the strongest attack gets of one kind of defence, from off to strong, with the chance level."""
    readings = [reading for row in line.rows if (reading := _gradual(kind, row)) is not None]
    labels = ["none" if value is None else f"{value:g}" for value in line.values]
    figure = go.Figure(
        go.Scatter(
            name="strongest attack",
            x=labels,
            y=[reading.value for reading in readings],
            error_y=error_bars(readings, 1, COLOURS[1]),
            mode="lines+markers",
            line={"color": COLOURS[1], "width": 1.5},
            marker={"color": COLOURS[1], "size": 9},
            text=[_hover(kind, row) for row in line.rows],
            hovertemplate="%{text}<extra></extra>",
        )
    )
    chances = [reading.chance for reading in readings]
    if None not in chances:
        figure.add_trace(
            go.Scatter(
                name="seeing nothing",
                x=labels,
                y=chances,
                mode="lines",
                line={"color": "#6b7280", "dash": "dash", "width": 1.5},
                hovertemplate="chance: %{y:.3g}<extra></extra>",
            )
        )
    figure.update_layout(**{**layout(height=260), "showlegend": False})
    figure.update_xaxes(title_text=f"{line.field or 'strength'} (weak to strong)", type="category")
    figure.update_yaxes(rangemode="tozero", **_settings(kind.strength_axis(readings)))
    return plain_figure(figure)


def _sweep_lines(kind: LeakKind, judged: Sequence[Judgement]) -> list[Line]:
    """Return the lines over a strength, each from no defence on, of which all points have the same reading."""
    bare = tuple(j.worst for j in judged if is_undefended(j.defence))[:1]
    lines = [
        dataclasses.replace(line, values=(*[None] * len(bare), *line.values), rows=(*bare, *line.rows))
        for line in lines_of(judged)
        if None not in line.values
    ]
    return [
        line for line in lines if len(line.rows) > 1 and len({_name(_gradual(kind, row)) for row in line.rows}) == 1
    ]


def _name(reading: Reading | None) -> str:
    return "" if reading is None else reading.name


def _gradual(kind: LeakKind, row: Row) -> Reading | None:
    """Return a reading that moves before the one that decides does, where there is one."""
    return kind.finer(row) or kind.chart_reading(row)


def _scale(utility: Reading | None) -> float:
    """Return what a utility is drawn in: an AUC as it is, a share in percent."""
    return 100 if utility is None or utility.name == ACCURACY else 1


def error_bars(readings: Sequence[Reading], scale: float, colour: str) -> dict[str, Any]:
    """Return bars over the intervals of readings."""
    return {
        "type": "data",
        "symmetric": False,
        "array": [scale * (high(reading) - reading.value) for reading in readings],
        "arrayminus": [scale * (reading.value - low(reading)) for reading in readings],
        "color": colour,
        "thickness": 1,
        "width": 3,
    }


def _hover(kind: LeakKind, row: Row) -> str:
    lines = [escaped(name_of(row.defence)), f"strongest attack: {escaped(row.attack)}", *map(escaped, kind.hover(row))]
    if row.utility is not None:
        lines.append(f"{utility_name(row.utility)}: {utility_text(row.utility)}")
    return "<br>".join(lines)


def escaped(text: str) -> str:
    """Keep plotly from reading a name as markup."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def layout(height: int) -> dict[str, Any]:
    """Return what all figures share: no background, no dragging, a legend above."""
    return {
        "template": "none",
        "height": height,
        "margin": {"l": 62, "r": 16, "t": 12, "b": 56},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"family": "inherit", "size": 12},
        "xaxis": {"title": {"font": {"size": 13}}},
        "yaxis": {"title": {"font": {"size": 13}}},
        "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
        "hoverlabel": {"align": "left"},
        "showlegend": True,
        "dragmode": False,
    }


def plain_figure(figure: go.Figure) -> dict[str, Any]:
    """Return a figure as plain data, without plotly's own colours."""
    found: dict[str, Any] = figure.to_plotly_json()
    found["layout"].pop("template", None)
    return found
