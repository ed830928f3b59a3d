"""Layers: where in the model the leak sits, by an attack on each layer and by measures that need none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from leaktight.core.display import capital
from leaktight.core.metric import Reading
from leaktight.findings.column import shown
from leaktight.findings.display import name_of
from leaktight.findings.kind import layer_measures
from leaktight.findings.layer_measure import SENSITIVITY
from leaktight.findings.layer_risk import (
    MUTUAL_INFORMATION,
    LayerRow,
    Profile,
    correlations,
    profiles_of,
    riskiest,
)
from leaktight.findings.layer_words import most_telling, together
from leaktight.report.page import Page, Section
from leaktight.report.plots import COLOURS, error_bars, escaped, layout, plain_figure
from leaktight.statistics.pooling import high, low

MOST_FIGURES = 12
FIRST, SMALL = 460, 260
BARE = "#6b7280"
_NONE = "-"
_TOP, _ROW, _REST = 170, 105, 90


class Panel(NamedTuple):
    """One measure: its reading, the axis it is drawn on, how the table heads and shows it, and by whom it is read."""

    name: str
    axis: str
    head: str
    digits: int = 2
    by: Literal["asking", "rebuilding", "measuring"] = "measuring"


def all_panels() -> list[Panel]:
    """Return every measure, in order: of attacks that ask, of no attack, of attacks that rebuild."""
    measures = layer_measures()
    return [
        *(Panel(one.reading, one.axis, one.head, one.digits, "asking") for one in measures if one.asked),
        *(
            Panel(f"{one.information}_share", f"V, {one.word}", f"V-information of the {one.word} / log 2")
            for one in measures
            if one.information
        ),
        Panel(f"{SENSITIVITY}_share", "sensitivity", "sensitivity (F), share of all layers"),
        Panel(f"{MUTUAL_INFORMATION}_share", "mutual inf.", "mutual information / log\N{SUBSCRIPT TWO} N", 3),
        *(Panel(one.reading, one.axis, one.head, one.digits, "rebuilding") for one in measures if not one.asked),
    ]


def layers_section(page: Page) -> Section | None:
    """Show for each scenario, setting and defence what each layer gives away; None if no single layer was measured."""
    groups: dict[str, list[Profile]] = {}
    for profile in profiles_of(page.records, page.summary.rows):
        if panels_of(profile.layers):
            groups.setdefault(profile.place.setting, []).append(profile)
    plots: dict[str, dict[str, Any]] = {}
    blocks = []
    for number, (setting, profiles) in enumerate(groups.items()):
        captions: dict[str, str] = {}
        for place, profile in enumerate(profiles):
            if len(plots) < MOST_FIGURES:
                name = f"plot-layers-{number}-{place}"
                plots[name] = figure_of(profile.layers, least=SMALL if captions else FIRST)
                captions[name] = capital(name_of(profile.place.defence))
        block = {
            "setting": setting,
            "captions": captions,
            "left": len(profiles) - len(captions),
            "said": [_sentences(profile, profile is profiles[0]) for profile in profiles],
            "table": table_of(profiles),
        }
        blocks.append(block)
    if not blocks:
        return None
    return Section(
        "layers", "Where the leak sits", "layers.html", {"blocks": blocks, "several": len(blocks) > 1}, plots
    )


def panels_of(rows: Sequence[LayerRow]) -> list[Panel]:
    """Return what was measured of any of these layers, in order."""
    return [panel for panel in all_panels() if any(panel.name in row.readings for row in rows)]


def _sentences(profile: Profile, first: bool) -> dict[str, Any]:
    """Name the layer that gives most away by itself.

    For the first profile, which is undefended if any is, also say what goes along with what.
    """
    sentences = [most_telling(profile.layers, profile.asked)]
    sentences += together(correlations(profile.layers)) if first else []
    return {"name": capital(name_of(profile.place.defence)), "sentences": sentences}


def figure_of(rows: Sequence[LayerRow], least: int = SMALL) -> dict[str, Any]:
    """Return one panel for each measure above the same layers, with 95 % intervals; dashed is chance.

    Args:
        rows: what was measured of each layer.
        least: how high the figure is at least, in pixels.
    """
    panels = panels_of(rows)
    heights = [_TOP, *[_ROW] * (len(panels) - 1)]
    figure = make_subplots(len(panels), 1, shared_xaxes=True, vertical_spacing=0.035, row_heights=heights)
    figure.update_layout(**{**layout(height=max(least, _REST + sum(heights))), "showlegend": False})
    for place, panel in enumerate(panels, start=1):
        _draw(figure, place, panel, rows)
    figure.update_xaxes(type="category", categoryorder="array", categoryarray=[short(row.layer) for row in rows])
    figure.update_xaxes(range=[-0.4, len(rows) - 0.6], zeroline=False)
    # Names stand upright where there is little room; long ones must push the panels up, not run out of the figure.
    figure.update_xaxes(automargin=True, row=len(panels))
    return plain_figure(figure)


def _draw(figure: go.Figure, place: int, panel: Panel, rows: Sequence[LayerRow]) -> None:
    measured = [row for row in rows if panel.name in row.readings]
    readings = [_with_bounds(row, panel.name) for row in measured]
    colour = COLOURS[all_panels().index(panel) % len(COLOURS)]
    figure.add_trace(
        go.Scatter(
            name=panel.head,
            x=[short(row.layer) for row in measured],
            y=[reading.value for reading in readings],
            error_y=error_bars(readings, 1, colour),
            mode="lines+markers",
            cliponaxis=False,
            line={"color": colour, "width": 1.5, "dash": "dot"},
            marker={"color": colour, "size": 8},
            customdata=[f"{escaped(row.layer)}<br>{panel.head} {_text(row, panel)}" for row in measured],
            hovertemplate="%{customdata}<extra></extra>",
        ),
        row=place,
        col=1,
    )
    chances = {reading.chance for reading in readings if reading.chance}
    if len(chances) == 1:
        figure.add_hline(y=chances.pop(), line={"color": BARE, "dash": "dash", "width": 1.2}, row=place, col=1)
    figure.update_yaxes(title_text=panel.axis, title_font={"size": 11}, nticks=5, row=place, col=1)
    if panel.by != "rebuilding":
        figure.update_yaxes(range=_range(panel, readings), row=place, col=1)


def _range(panel: Panel, readings: Sequence[Reading]) -> list[float]:
    """Return the ends of an axis: an AUC from chance to 1, a share from 0 as far as it goes; lower where readings are.

    Few repeats make intervals of V-information that reach far below 0; they are cut, or values could not be told apart.
    """
    least, most = min(map(low, readings)), max(map(high, readings))
    if panel.by == "asking":
        return [min(0.45, least - 0.02), 1.03]
    room = 0.08 * max(most, 1e-3)
    return [min(0.0, max(least, -0.5), *(reading.value for reading in readings)) - room, most + room]


def _with_bounds(row: LayerRow, name: str) -> Reading:
    """Return a reading, with the lower bound as the lower end of an upper one."""
    reading = row.readings[name]
    lower = row.readings.get(name.replace("upper", "lower"), reading)
    return reading if lower is reading else reading.model_copy(update={"low": lower.value, "high": reading.value})


def _text(row: LayerRow, panel: Panel) -> str:
    reading = _with_bounds(row, panel.name)

    def number(value: float) -> str:
        return f"{round(value, panel.digits) + 0.0:.{panel.digits}f}"

    if panel.name.startswith(MUTUAL_INFORMATION) and reading.low is not None:
        return f"{number(reading.low)} to {number(reading.value)}"
    return shown(reading, number)


def short(layer: str) -> str:
    """Return the name of a layer for an axis.

    Example:
        >>> short("body.conv1"), short("head")
        ('conv1', 'head')
    """
    return layer.removeprefix("body.")


def table_of(profiles: Sequence[Profile]) -> dict[str, Any]:
    """Return what the figures of several defences show as numbers."""
    return table_of_rows(
        [
            (capital(name_of(profile.place.defence)), profile.layers, LayerRow("all layers together", profile.together))
            for profile in profiles
        ]
    )


def table_of_rows(parts: Sequence[tuple[str, Sequence[LayerRow], LayerRow | None]]) -> dict[str, Any]:
    """Return layers as numbers: in each named part a line for each layer, bold where an attack on one layer tells most.

    Args:
        parts: for each its name, the layers, and if known what was measured of all layers together.
    """
    panels = panels_of([row for _, rows, _ in parts for row in rows])
    groups = []
    for name, rows, whole in parts:
        most = {panel.name: riskiest(rows, panel.name) for panel in panels_of(rows)}
        lines = [
            {"name": row.layer, "cells": [_cell(row, panel, row in most.get(panel.name, [])) for panel in panels]}
            for row in rows
        ]
        if whole is not None and panels_of([whole]):
            lines.append({"name": whole.layer, "cells": [_cell(whole, panel, False) for panel in panels]})
        groups.append({"name": name, "lines": lines})
    return {"heads": [panel.head for panel in panels], "groups": groups}


def _cell(row: LayerRow, panel: Panel, most: bool) -> dict[str, Any]:
    if panel.name not in row.readings:
        return {"text": _NONE, "tone": "", "top": False}
    attacked = panel.by != "measuring"
    return {
        "text": _text(row, panel),
        "tone": "leaks" if attacked and row.readings[panel.name].beats_chance() else "",
        "top": most and attacked,
    }
