"""Curve: the figure of one privacy-preserving characteristic, after the paper's figure 5."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from leaktight.core.display import percent
from leaktight.core.metric import Reading
from leaktight.findings.characteristic import Curve, Spot
from leaktight.findings.display import name_of
from leaktight.findings.kind import distances
from leaktight.findings.utility import utility_name
from leaktight.metrics.tradeoff import GREEN_BELOW, RED_ABOVE, abscissa
from leaktight.report.plots import COLOURS, error_bars, escaped, layout, plain_figure

USE, ERROR = COLOURS[1], COLOURS[0]
# Thin enough for either paper: a wash on white, a glow on black.
SHADES = {"green": "rgba(46, 160, 67, 0.17)", "red": "rgba(218, 54, 51, 0.15)"}
TITLES = {"reconstruction": "relative error", "membership": "labels missed", "tracing": "not traced"}
_ROW, _REST = 185, 120
# Errors that span more than this are drawn on a logarithmic axis, or the small ones could not be told apart.
_SPAN = 50


def figure_of(curve: Curve) -> dict[str, Any] | None:
    """Return utility and distances over the ratio, one row for each distance.

    None if fewer than two strengths have a ratio. Without a utility that means anything, distances alone.
    """
    placed = sorted((abscissa(ratio.value), number) for number, spot in enumerate(curve.spots) if (ratio := spot.ratio))
    spots = [curve.spots[number] for _, number in placed]
    aims = [aim for aim in distances() if spots and all(spot.distance(aim) for spot in spots)]
    if len(spots) < 2 or not aims:
        return None
    places = [place for place, _ in placed]
    figure = make_subplots(
        len(aims), 1, shared_xaxes=True, vertical_spacing=0.06, specs=[[{"secondary_y": True}]] * len(aims)
    )
    reach = max(places[-1] * 1.06, abscissa(RED_ABOVE) + 0.2)
    for row, aim in enumerate(aims, start=1):
        _draw(figure, row, aim, curve, spots, places, reach)
    figure.update_layout(**layout(height=_REST + _ROW * len(aims)))
    figure.update_layout(margin={"l": 58, "r": 58, "t": 12, "b": 56}, shapes=_regions(reach))
    figure.update_xaxes(range=[0, reach], domain=[0, 1], zeroline=False)
    figure.update_xaxes(title_text="log\N{SUBSCRIPT ONE}\N{SUBSCRIPT ZERO}(ratio + 1): strong to weak", row=len(aims))
    return plain_figure(figure)


def _draw(
    figure: go.Figure, row: int, aim: str, curve: Curve, spots: Sequence[Spot], places: Sequence[float], reach: float
) -> None:
    uses = [spot.row.utility for spot in spots if spot.row.utility is not None and not spot.row.unpriced]
    errors = [distance for spot in spots if (distance := spot.distance(aim)) is not None]
    hover = [_hover(spot, aim) for spot in spots]
    shown = row == 1
    strengths = [f"{spot.strength:g}" for spot in spots] if shown else None
    if uses:
        name = utility_name(uses[0])
        base = curve.base.utility if curve.base is not None else None
        if base is not None:
            figure.add_trace(_reference(f"{name} without defence", reach, 100 * base.value, shown), row=row, col=1)
        figure.add_trace(_line(name, places, uses, 100, USE, "circle", hover, strengths, shown), row=row, col=1)
        figure.update_yaxes(title_text=name, ticksuffix=" %", range=[0, 108], dtick=25, row=row, secondary_y=False)
    line = _line(
        "distance from the truth", places, errors, 1, ERROR, "square", hover, None if uses else strengths, shown
    )
    figure.add_trace(line, row=row, col=1, secondary_y=True)
    values = [error.value for error in errors]
    steep = min(values) > 0 and max(values) / min(values) > _SPAN
    scale: dict[str, Any] = (
        {"type": "log", "dtick": 1} if steep else {"rangemode": "tozero", "nticks": 6, "tickmode": "auto"}
    )
    if aim != "reconstruction":
        scale = {"range": [0, 1.08], "dtick": 0.25}
    figure.update_yaxes(title_text=TITLES[aim], showgrid=False, zeroline=False, **scale, row=row, secondary_y=True)


def _line(
    name: str,
    places: Sequence[float],
    readings: Sequence[Reading],
    scale: float,
    colour: str,
    symbol: str,
    hover: Sequence[str],
    text: Sequence[str] | None,
    legend: bool,
) -> go.Scatter:
    return go.Scatter(
        name=name,
        x=list(places),
        y=[scale * reading.value for reading in readings],
        error_y=error_bars(readings, scale, colour),
        mode="lines+markers+text" if text else "lines+markers",
        text=text,
        textposition="top center",
        textfont={"size": 10},
        cliponaxis=False,
        line={"color": colour, "width": 1.5, "dash": "dashdot"},
        marker={"color": colour, "symbol": symbol, "size": 8},
        customdata=list(hover),
        hovertemplate="%{customdata}<extra></extra>",
        legendgroup=name,
        showlegend=legend,
    )


def _reference(name: str, reach: float, value: float, legend: bool) -> go.Scatter:
    return go.Scatter(
        name=name,
        x=[0, reach],
        y=[value, value],
        mode="lines",
        line={"color": USE, "width": 1.2, "dash": "dash"},
        hoverinfo="skip",
        legendgroup=name,
        showlegend=legend,
    )


def _regions(reach: float) -> list[dict[str, Any]]:
    """Return the paper's regions as shades behind all rows."""
    spans = {"green": (0, abscissa(GREEN_BELOW)), "red": (abscissa(RED_ABOVE), reach)}
    common = {"type": "rect", "xref": "x", "yref": "paper", "y0": 0, "y1": 1, "line": {"width": 0}, "layer": "below"}
    return [{**common, "x0": start, "x1": end, "fillcolor": SHADES[name]} for name, (start, end) in spans.items()]


def _hover(spot: Spot, aim: str) -> str:
    lines = [escaped(name_of(spot.row.defence))]
    if spot.ratio is not None:
        lines.append(f"ratio: {spot.ratio.value:.3g} ({spot.region})")
    if spot.row.utility is not None and not spot.row.unpriced:
        lines.append(f"{utility_name(spot.row.utility)}: {percent(spot.row.utility.value)}")
    distance = spot.distance(aim)
    if distance is not None:
        lines.append(f"{TITLES[aim]}: {distance.value:.3g}")
    return "<br>".join(lines)
