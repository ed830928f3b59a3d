"""Layers: where in the model the leak sits, by an attack on each layer and by measures that need none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from leaktight.core.display import capital
from leaktight.core.metric import Reading, quantity_of
from leaktight.findings.column import format_reading
from leaktight.findings.display import name_of
from leaktight.findings.kind import layer_measures
from leaktight.findings.layer_measure import REMAINING
from leaktight.findings.layer_risk import (
    MUTUAL_INFORMATION,
    LayerRow,
    Profile,
    correlations,
    profiles_of,
    riskiest,
    sealing_measure,
    sealings,
)
from leaktight.findings.layer_words import most_telling, titles_without_attack, together
from leaktight.report.chart import Chart, Figure, Panel, Point, Series, named, scale
from leaktight.report.page import Page, Section
from leaktight.statistics.pooling import high, low

MOST_FIGURES = 12
FIRST, _PANEL = 170, 95
_NONE = "-"


class Measure(NamedTuple):
    """One measure: its reading, how tables and axes head it and show it, and by whom it is read."""

    name: str
    head: str
    digits: int = 2
    by: Literal["asking", "rebuilding", "measuring"] = "measuring"


def all_measures() -> list[Measure]:
    """Return every measure, in order: of attacks that ask, of no attack, of attacks that rebuild."""
    measures = layer_measures()
    return [
        *(Measure(one.reading, one.head, one.digits, "asking") for one in measures if one.question),
        *(
            Measure(name, title, 3 if name.startswith(MUTUAL_INFORMATION) else 2)
            for name, title in titles_without_attack().items()
        ),
        *(Measure(one.reading, one.head, one.digits, "rebuilding") for one in measures if not one.question),
    ]


def layers_section(page: Page) -> Section | None:
    """Show for each scenario, setting and defence what each layer gives away; None if no single layer was measured."""
    groups: dict[str, list[Profile]] = {}
    for profile in profiles_of(page.records, page.summary.rows):
        if measures_of(profile.layers):
            groups.setdefault(profile.place.setting, []).append(profile)
    shown_before = 0
    blocks = []
    for number, (setting, profiles) in enumerate(groups.items()):
        figures = [
            Figure(
                f"plot-layers-{number}-{place}",
                capital(name_of(profile.place.defence)),
                chart_of(profile.layers, page.palette.colour_for(profile.place.defence), _PANEL if place else FIRST),
                wide=not place,
            )
            for place, profile in enumerate(profiles[: MOST_FIGURES - shown_before])
        ]
        shown_before += len(figures)
        block = {
            "setting": setting,
            "figures": figures,
            "left": len(profiles) - len(figures),
            "said": [_sentences(profile, profile is profiles[0]) for profile in profiles],
            "table": table_of(profiles),
        }
        blocks.append(block)
    if not blocks:
        return None
    values = {"blocks": blocks, "several": len(blocks) > 1, "headline": "", "chance": has_chance(blocks)}
    return Section("layers", "Where the leak sits", "layers.html", values)


def has_chance(blocks: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether any chart of these blocks shows what guessing gets."""
    return any(figure.chart.has_chance for block in blocks for figure in block["figures"])


def measures_of(rows: Sequence[LayerRow]) -> list[Measure]:
    """Return what was measured of any of these layers, in order."""
    return [panel for panel in all_measures() if any(panel.name in row.readings for row in rows)]


def _sentences(profile: Profile, first: bool) -> dict[str, Any]:
    """Name the layer that gives most away by itself.

    For the first profile, which is undefended if any is, also say what goes along with what.
    """
    sentences = [most_telling(profile.layers, profile.question)]
    sentences += together(correlations(profile.layers)) if first else []
    return {"name": capital(name_of(profile.place.defence)), "sentences": sentences}


def chart_of(rows: Sequence[LayerRow], colour: str = "plain", first: int = _PANEL) -> Chart:
    """Return one panel for each measure above the same layers, with 95 % intervals; dashed is chance.

    Where layers have chance levels of their own, each has a tick.

    Args:
        rows: what was measured of each layer.
        colour: that of the defence.
        first: how high the first panel is, in pixels.
    """
    panels: list[Panel] = []
    for measure in measures_of(rows):
        placed = [(place, row) for place, row in enumerate(rows) if measure.name in row.readings]
        readings = [_with_bounds(row, measure.name) for _, row in placed]
        chances = {reading.chance for reading in readings if reading.chance}
        level = chances.pop() if len(chances) == 1 else None
        points = tuple(
            Point(
                float(place),
                one.value,
                one.low,
                one.high,
                chance=(one.chance or None) if level is None else None,
                tip=f"{row.layer}\n{measure.head} {_text(row, measure)}",
            )
            for (place, row), one in zip(placed, readings, strict=True)
        )
        ends = None if measure.by == "rebuilding" else _range(measure, readings)
        values = [end for one in readings for end in (low(one), high(one), one.chance) if end is not None]
        y = scale(measure.head, values, ends=ends, most=5)
        series = Series(measure.head, colour, points, "circle", "dots")
        panels.append(Panel(y, (series,), _PANEL if panels else first, level))
    x = named("", [short(row.layer) for row in rows])
    about = "What each layer gives away by itself, a panel for each measure; the numbers are in the table below."
    return Chart(x, tuple(panels), about, legend=False)


def sealing_charts(rows: Sequence[LayerRow]) -> list[Chart]:
    """Return what is still told over how much of the model is sealed; none where that was not measured."""
    measure = sealing_measure(rows)
    steps = [] if measure is None else sealings(rows, measure)
    if measure is None or not steps:
        return []
    total = steps[-1].bytes
    points = [
        Point(
            100 * step.bytes / total,
            step.remaining.value,
            step.remaining.low,
            step.remaining.high,
            tip=f"{step.count} sealed, {step.layer} last\nAUC of the rest {step.remaining.value:.2f}",
        )
        for step in steps
    ]
    whole = quantity_of(measure.reading_name(REMAINING))
    values = [end for step in steps for end in (low(step.remaining), high(step.remaining))]
    y = scale(whole.title, values, ends=(min(0.45, *values) - 0.02, 1.03), most=5)
    x = scale("share of the parameters' bytes that is sealed", [0, 100], " %", ends=(0, 100))
    panel = Panel(y, (Series(whole.title, "plain", tuple(points)),), FIRST, steps[0].remaining.chance)
    about = "What an attack on the layers that are seen still tells, over how much of the model is sealed."
    return [Chart(x, (panel,), about, legend=False)]


def _range(measure: Measure, readings: Sequence[Reading]) -> tuple[float, float]:
    """Return the ends of an axis: an AUC from chance to 1, a share from 0 as far as it goes; lower where readings are.

    Few repeats make intervals of V-information that reach far below 0; they are cut, or values could not be told apart.
    """
    least, most = min(map(low, readings)), max(map(high, readings))
    if measure.by == "asking":
        return min(0.45, least - 0.02), 1.03
    room = 0.08 * max(most, 1e-3)
    return min(0.0, max(least, -0.5), *(reading.value for reading in readings)) - room, most + room


def _with_bounds(row: LayerRow, name: str) -> Reading:
    """Return a reading, with the lower bound as the lower end of an upper one."""
    reading = row.readings[name]
    lower = row.readings.get(name.replace("upper", "lower"), reading)
    return reading if lower is reading else reading.model_copy(update={"low": lower.value, "high": reading.value})


def _text(row: LayerRow, panel: Measure) -> str:
    reading = _with_bounds(row, panel.name)

    def number(value: float) -> str:
        return f"{round(value, panel.digits) + 0.0:.{panel.digits}f}"

    if panel.name.startswith(MUTUAL_INFORMATION) and reading.low is not None:
        return f"{number(reading.low)} to {number(reading.value)}"
    return format_reading(reading, number)


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
            (capital(name_of(profile.place.defence)), profile.layers, LayerRow("whole message", profile.together))
            for profile in profiles
        ]
    )


def table_of_rows(parts: Sequence[tuple[str, Sequence[LayerRow], LayerRow | None]]) -> dict[str, Any]:
    """Return layers as numbers: in each named part a line for each layer, bold where an attack on one layer tells most.

    Args:
        parts: for each its name, the layers, and if known what was measured of all layers together.
    """
    panels = measures_of([row for _, rows, _ in parts for row in rows])
    groups = []
    for name, rows, whole in parts:
        most = {panel.name: _riskiest_layers(rows, panel.name) for panel in measures_of(rows)}
        lines = [
            {"name": row.layer, "cells": [_cell(row, panel, row in most.get(panel.name, [])) for panel in panels]}
            for row in rows
        ]
        if whole is not None and measures_of([whole]):
            lines.append({"name": whole.layer, "cells": [_cell(whole, panel, False) for panel in panels]})
        groups.append({"name": name, "lines": lines})
    return {"heads": [panel.head for panel in panels], "groups": groups}


def _riskiest_layers(rows: Sequence[LayerRow], name: str) -> list[LayerRow]:
    """Return the layers that an attack gets most from; none where that is all of them."""
    found = riskiest(rows, name)
    return [] if 1 < len(found) == sum(name in row.readings for row in rows) else found


def _cell(row: LayerRow, panel: Measure, most: bool) -> dict[str, Any]:
    if panel.name not in row.readings:
        return {"text": _NONE, "tone": "", "top": False}
    attacked = panel.by != "measuring"
    return {
        "text": _text(row, panel),
        "tone": "leaks" if attacked and row.readings[panel.name].beats_chance() else "",
        "top": most and attacked,
    }
