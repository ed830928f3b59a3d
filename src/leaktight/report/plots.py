"""Plots: the trade-off between accuracy and leakage, and leakage over strength.

A figure is plain data for plotly.js, checked by plotly's own classes. Colours of text and lines come from the page's style sheet, so
that one figure serves light, dark and print.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go

from leaktight.core.defence import is_undefended
from leaktight.core.display import capital, percent
from leaktight.core.metric import Reading, quantity_of
from leaktight.findings.display import family_of, name_of, strength_of, title_of
from leaktight.findings.label_leak import place_of, tells_labels
from leaktight.findings.property_leak import GUESSING, tells_property, whence
from leaktight.findings.rows import PSNR, STATEMENT, Row
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
    """Return the lines of a plot; a number may be swept anywhere in a defence, in a link of a chain or in what a guard applies."""
    rows = {judgement.defence.key: judgement.worst for judgement in judged}
    found = [
        Line(
            sweep.family, sweep.field, tuple(value for value, _ in sweep.members), tuple(rows[d.key] for _, d in sweep.members)
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
    scenarios = dict.fromkeys(judgement.scenario for judgement in charted)
    for scenario, about_property in itertools.product(scenarios, (False, True)):
        judged = [j for j in charted if j.scenario == scenario and tells_property(j.worst.leak) == about_property]
        suffix = f", scenario {scenario}" if len(scenarios) > 1 else ""
        place, leak = (f"{scenario}-property", "property AUC") if about_property else (str(scenario), "leakage")
        figure = tradeoff(judged)
        if figure is not None:
            plots[f"plot-tradeoff-{place}"] = figure
            utility = next((j.worst.utility for j in judged if j.worst.utility is not None), None)
            captions[f"plot-tradeoff-{place}"] = f"{capital(utility_name(utility))} against {leak}{suffix}"
        for number, line in enumerate(_swept(judged)):
            name = f"plot-strength-{place}-{number}"
            plots[name] = over_strength(line)
            captions[name] = f"{capital(line.name)}: {leak} over strength{suffix}"
    if not plots:
        return None
    return Section("trade-off", "Protection against usefulness", "tradeoff.html", {"captions": captions}, plots)


def tradeoff(judged: Sequence[Judgement]) -> dict[str, Any] | None:
    """Return accuracy against what the strongest attack gets, one line for each kind of defence from weak to strong."""
    placed = [j for j in judged if j.worst.utility is not None and j.worst.drawn is not None]
    leak = placed[0].worst.drawn if placed else None
    if leak is None:
        return None
    placed = [j for j in placed if j.worst.drawn is not None and j.worst.drawn.name == leak.name]
    share = leak.name == STATEMENT
    figure = go.Figure()
    number = 0
    # The undefended point comes last, so that no other covers it.
    for line in sorted(lines_of(placed), key=lambda line: is_undefended(line.rows[0].defence)):
        bare = is_undefended(line.rows[0].defence)
        colour, symbol = ("#6b7280", "star") if bare else (COLOURS[number % len(COLOURS)], SYMBOLS[number % len(SYMBOLS)])
        number += not bare
        figure.add_trace(_line(line, colour, symbol, 100 if share else 1))
    figure.update_layout(**layout(height=460))
    use = placed[0].worst.utility
    figure.update_xaxes(title_text=f"{utility_name(use)} of the trained model", ticksuffix=" %" if _scale(use) > 1 else "")
    if share:
        figure.update_yaxes(title_text="images recognised", ticksuffix=" %", range=[-5, 112], dtick=20)
    else:
        figure.update_yaxes(title_text=_axis(leak))
    if tells_property(leak):
        figure.add_hline(y=GUESSING, line={"color": "#6b7280", "dash": "dash", "width": 1.2})
        figure.update_yaxes(range=_auc_range([j.worst.drawn for j in placed if j.worst.drawn is not None]))
    return plain_figure(figure)


def _line(line: Line, colour: str, symbol: str, scale: float) -> go.Scatter:
    utilities = [row.utility for row in line.rows if row.utility is not None]
    leaks = [row.drawn for row in line.rows if row.drawn is not None]
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
        customdata=[_hover(row) for row in line.rows],
        hovertemplate="%{customdata}<extra></extra>",
    )


def over_strength(line: Line) -> dict[str, Any]:
    """Return what the strongest attack gets of one kind of defence, from off to strong, with the chance level."""
    readings = [reading for row in line.rows if (reading := _gradual(row)) is not None]
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
            text=[_hover(row) for row in line.rows],
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
    figure.update_yaxes(title_text=_axis(readings[0]), rangemode="tozero")
    if tells_labels(readings[0]) or tells_property(readings[0]):
        figure.update_yaxes(range=_auc_range(readings))
    return plain_figure(figure)


def _swept(judged: Sequence[Judgement]) -> list[Line]:
    """Return the lines over a strength, each from no defence on, of which all points have the same reading."""
    bare = tuple(j.worst for j in judged if is_undefended(j.defence))[:1]
    lines = [
        dataclasses.replace(line, values=(*[None] * len(bare), *line.values), rows=(*bare, *line.rows))
        for line in lines_of(judged)
        if None not in line.values
    ]
    return [line for line in lines if len(line.rows) > 1 and len({_name(_gradual(row)) for row in line.rows}) == 1]


def _name(reading: Reading | None) -> str:
    return "" if reading is None else reading.name


def _gradual(row: Row) -> Reading | None:
    """Return a reading that moves before a share of recognised images does: PSNR where there is one."""
    return row.reading(PSNR, "raw") or row.drawn


def _auc_range(readings: Sequence[Reading]) -> list[float]:
    return [min(0.45, *(low(reading) - 0.02 for reading in readings)), 1.03]


def _axis(reading: Reading) -> str:
    return quantity_of(reading.name).heading


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


def _hover(row: Row) -> str:
    lines = [escaped(name_of(row.defence)), f"strongest attack: {escaped(row.attack)}"]
    if row.recognised is not None:
        lines.append(f"recognised: {percent(row.recognised.value)}")
    if row.leak is not None and tells_labels(row.leak):
        lines.append(f"{title_of(row.leak.name)}: {row.leak.value:.3f} {place_of(row.leak)}")
    if row.leak is not None and tells_property(row.leak):
        lines.append(f"{title_of(row.leak.name)}: {row.leak.value:.3f}, {whence(row.leak)}")
    if row.median is not None:
        lines.append(f"PSNR: {row.median:.1f} dB")
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
