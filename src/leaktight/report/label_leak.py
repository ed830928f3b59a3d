"""Labels over training: how well each attack tells labels, step by step, at each layer, under each defence."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from statistics import fmean, median
from typing import Any

import plotly.graph_objects as go

from leaktight.core.defence import is_undefended
from leaktight.core.errors import InvalidValue
from leaktight.core.metric import Reading
from leaktight.core.record import Cell, Record, Status
from leaktight.core.scenario import Scenario
from leaktight.findings.display import family_of, name_of
from leaktight.findings.label_leak import GUESSING, LEAK_AUC, PASSES, TAIL, place_of, strongest_layer, weight
from leaktight.findings.passes import BESIDE, LabelPasses, passes_of
from leaktight.findings.rows import Row
from leaktight.learning.split import Split
from leaktight.report.page import Page, Section
from leaktight.report.plots import COLOURS, escaped, layout, plain_figure

MOST_FIGURES = 12
FIRST, SMALL = 460, 260
BARE = "#6b7280"
_NONE = "-"


@dataclasses.dataclass(frozen=True)
class Course:
    """What one attack got at one layer under one defence, over the steps of a training.

    Args:
        row: where it was measured.
        median: the leak AUC over all steps.
        tail: its 95 % quantile; None in records that lack it.
        steps: when, in percent of the training, or counted from its stage on.
        values: the leak AUC of each step, the mean over seeds; empty in a redacted report.
    """

    row: Row
    median: Reading
    tail: Reading | None
    steps: tuple[float, ...] = ()
    values: tuple[float, ...] = ()


def labels_section(page: Page) -> Section | None:
    """Show leak AUC over training for each attack and layer, one line for each defence.

    None if no labels were told apart.
    """
    groups: dict[tuple[int, int, str], list[Row]] = {}
    for row in page.summary.rows:
        if any(reading.name in (LEAK_AUC, PASSES) for reading in row.readings):
            groups.setdefault((row.scenario, row.batch_size, row.stage), []).append(row)
    if not groups:
        return None
    records = {record.cell.key: record for record in page.records}
    plots: dict[str, dict[str, Any]] = {}
    blocks = []
    for number, rows in enumerate(groups.values()):
        courses = [
            course for row in rows for course in courses_of(row, [records[key] for key in row.cells if key in records])
        ]
        panels = _panels(courses)
        captions: dict[str, str] = {}
        for place, panel in enumerate(panels.values()):
            if len(plots) < MOST_FIGURES and any(course.values for course in panel):
                name = f"plot-labels-{number}-{place}"
                plots[name] = figure_of(panel, height=FIRST if not captions else SMALL)
                captions[name] = _caption(panel[0])
        over_passes = [found for row in rows if (found := passes_of(row)) is not None]
        curve = f"plot-passes-{number}" if any(len(one.course) > 1 for one in over_passes) else ""
        if curve:
            plots[curve] = passes_figure(over_passes)
        block = {
            "setting": rows[0].setting,
            "captions": captions,
            "left": len(panels) - len(captions),
            "passes": [_passes(one) for one in over_passes],
            "beside": list(BESIDE.values()),
            "curve": curve,
            "key": legend_of(rows) if captions or curve else [],
            "tables": _tables(courses),
        }
        blocks.append(block)
    values = {"blocks": blocks, "several": len(blocks) > 1, "redact": page.redact}
    return Section("labels", "Labels over training", "labels.html", values, plots)


def courses_of(row: Row, records: Sequence[Record]) -> list[Course]:
    """Return the course at each layer that a row was measured at, in the order of its readings."""
    tails = {reading.layer: reading for reading in row.readings if reading.name == TAIL}
    done = [record for record in records if record.status is Status.DONE]
    found = []
    for found_at in (reading for reading in row.readings if reading.name == LEAK_AUC):
        each = [
            r.each
            for record in done
            for r in record.readings
            if r.name == LEAK_AUC and r.layer == found_at.layer and r.each
        ]
        # Steps with one class alone are left out, in other seeds others: then only one seed's can be drawn.
        alike = each if len({len(values) for values in each}) == 1 else each[:1]
        values = tuple(map(fmean, zip(*alike, strict=True)))
        steps = steps_of(done[0].cell, len(values)) if done else ()
        found.append(Course(row, found_at, tails.get(found_at.layer), steps, values))
    return found


def steps_of(cell: Cell, count: int) -> tuple[float, ...]:
    """Return when the steps of a cell were: in percent of the training, or for a single stage counted from there on.

    Where steps are missing, because all their examples were of one class, the others are taken as evenly spread.

    Args:
        cell: what was measured.
        count: how many steps there are.
    """
    if cell.stage != "training":
        return tuple(float(step) for step in range(1, count + 1))
    length = _length(cell.scenario) if count == cell.victims else 0
    if not isinstance(cell.scenario, Split) or not length:
        return tuple(100 * (number + 0.5) / count for number in range(count))
    starts = cell.scenario.spread()
    moments = [victim * len(starts) // count for victim in range(count)]
    steps = [starts[moment] + moments[:victim].count(moment) for victim, moment in enumerate(moments)]
    return tuple(100 * step / length for step in steps)


def _length(scenario: Scenario) -> int:
    """Return how many steps a split training takes; 0 where nobody knows.

    Nobody knows how many steps there are in passes over data that are not here any more.
    """
    try:
        return scenario.length if isinstance(scenario, Split) else 0
    except InvalidValue:
        return 0


def smooth(values: Sequence[float]) -> list[float]:
    """Return the running median over about a tenth of the steps, fewer near the ends.

    Of a few steps, return the values themselves.

    Example:
        >>> smooth([0.5, 0.9, 0.6]), smooth([0.5] * 10 + [1.0] + [0.5] * 29)[10]
        ([0.5, 0.9, 0.6], 0.5)
    """
    reach = len(values) // 20
    return [median(values[max(0, at - reach) : at + reach + 1]) for at in range(len(values))]


def figure_of(panel: Sequence[Course], height: int = SMALL) -> dict[str, Any]:
    """Return a line for each defence, and to the right of it its median (dot) and 95 % quantile (triangle)."""
    figure = go.Figure()
    shades = _shades([course.row for course in panel])
    end = max(step for course in panel for step in course.steps)
    rim = end * 1.04 + 0.5
    for course in panel:
        colour, opacity = shades[course.row.defence.key]
        name = escaped(name_of(course.row.defence))
        shared = {"name": name, "opacity": opacity}
        figure.add_trace(
            go.Scatter(
                **shared,
                x=course.steps,
                y=smooth(course.values),
                mode="lines",
                line={"color": colour, "width": 1.6},
                hovertemplate=f"{name}<br>AUC %{{y:.2f}} at %{{x:.3g}}<extra></extra>",
            )
        )
        figure.add_trace(_ends(course, rim, colour, shared))
    chance = _chance(panel)
    figure.add_hline(y=chance, line={"color": BARE, "dash": "dash", "width": 1.2})
    lowest = min([chance, *(value for course in panel for value in smooth(course.values))])
    figure.update_layout(**{**layout(height=height), "showlegend": False})
    training = panel[0].row.stage == "training"
    figure.update_xaxes(title_text="share of the training" if training else "step", ticksuffix=" %" if training else "")
    figure.update_xaxes(range=[0, rim * 1.02], zeroline=False)
    figure.update_yaxes(title_text="leak AUC", range=[max(-0.02, lowest - 0.04), 1.03], dtick=0.1)
    return plain_figure(figure)


def passes_figure(over_passes: Sequence[LabelPasses], height: int = SMALL) -> dict[str, Any]:
    """Return the AUC over passes for each defence.

    It is that of the attack that tells most beyond its chance level in the end.
    """
    figure = go.Figure()
    shades = _shades([one.row for one in over_passes])
    best: dict[str, LabelPasses] = {}
    for one in sorted(over_passes, key=lambda one: weight(strongest_layer(one.row.readings) or one.aucs[PASSES])):
        if one.course:
            best[one.row.defence.key] = one
    for key, one in best.items():
        colour, opacity = shades[key]
        name = escaped(name_of(one.row.defence))
        figure.add_trace(
            go.Scatter(
                name=name,
                opacity=opacity,
                x=list(range(1, len(one.course) + 1)),
                y=one.course,
                mode="lines+markers",
                line={"color": colour, "width": 1.6},
                hovertemplate=f"{name}, {escaped(one.row.attack)}<br>AUC %{{y:.2f}} after %{{x}} passes<extra></extra>",
            )
        )
    figure.add_hline(y=GUESSING, line={"color": BARE, "dash": "dash", "width": 1.2})
    figure.update_layout(**{**layout(height=height), "showlegend": False})
    lowest = min([GUESSING, *(value for one in best.values() for value in one.course)])
    figure.update_xaxes(title_text="passes over the data", rangemode="tozero")
    figure.update_yaxes(title_text="leak AUC", range=[max(-0.02, lowest - 0.04), 1.03], dtick=0.1)
    return plain_figure(figure)


def _passes(one: LabelPasses) -> dict[str, Any]:
    cells = [f"{one.aucs[name].value:.2f}" if name in one.aucs else _NONE for name in BESIDE]
    where = f"{one.row.attack}, {one.place}" + (f", {len(one.course)} passes" if one.course else "")
    judged = strongest_layer(one.row.readings)
    return {
        "name": name_of(one.row.defence),
        "where": where,
        "cells": list(zip(BESIDE, cells, strict=True)),
        "tone": "leaks" if judged is not None and judged.beats_chance() else "",
    }


def _ends(course: Course, rim: float, colour: str, shared: dict[str, Any]) -> go.Scatter:
    marked = [(course.median, "circle", "median")] + (
        [(course.tail, "triangle-up", "95 % quantile")] if course.tail else []
    )
    return go.Scatter(
        **shared,
        x=[rim] * len(marked),
        y=[reading.value for reading, _, _ in marked],
        mode="markers",
        cliponaxis=False,
        marker={"color": colour, "symbol": [symbol for _, symbol, _ in marked], "size": 8},
        customdata=[words for _, _, words in marked],
        hovertemplate=f"{shared['name']}<br>%{{customdata}} %{{y:.3f}}<extra></extra>",
    )


def _panels(courses: Iterable[Course]) -> dict[tuple[str, str | None], list[Course]]:
    """Return the courses of each attack and layer; the cut before all others, then layer by layer."""
    found: dict[tuple[str, str | None], list[Course]] = {}
    for course in courses:
        found.setdefault((course.row.attack, course.median.layer), []).append(course)
    layers = list(dict.fromkeys(layer for _, layer in found))
    return dict(sorted(found.items(), key=lambda item: (item[0][1] is not None, layers.index(item[0][1]))))


def _shades(rows: Iterable[Row]) -> dict[str, tuple[str, float]]:
    """Return a colour for each kind of defence, the fuller the stronger; grey for none."""
    families: dict[str, list[str]] = {}
    for defence in {row.defence.key: row.defence for row in rows}.values():
        families.setdefault("" if is_undefended(defence) else family_of(defence), []).append(defence.key)
    named = [family for family in families if family]
    found = {}
    for family, keys in families.items():
        colour = COLOURS[named.index(family) % len(COLOURS)] if family else BARE
        for place, key in enumerate(keys, start=1):
            found[key] = colour, 0.3 + 0.7 * place / len(keys)
    return found


def legend_of(rows: Sequence[Row]) -> list[tuple[str, str, float]]:
    """Return each defence with its colour and how full the colour is.

    This stands beside the figures, because a phone has no room for it in them.
    """
    names = {row.defence.key: name_of(row.defence) for row in rows}
    return [(names[key], *shade) for key, shade in _shades(rows).items()]


def _chance(panel: Sequence[Course]) -> float:
    return max(GUESSING if course.median.chance is None else course.median.chance for course in panel)


def _caption(course: Course) -> str:
    return f"{course.row.attack}, {place_of(course.median)}"


def _tables(courses: Sequence[Course]) -> list[dict[str, Any]]:
    """Return a table for each attack: defences by layers, each with median and 95 % quantile."""
    found = []
    for attack in dict.fromkeys(course.row.attack for course in courses):
        here = [course for course in courses if course.row.attack == attack]
        layers = list(dict.fromkeys(course.median.layer for course in here))
        lines: dict[str, dict[str | None, Course]] = {}
        for course in here:
            lines.setdefault(name_of(course.row.defence), {})[course.median.layer] = course
        top = {name: max(line.values(), key=lambda course: weight(course.median)) for name, line in lines.items()}
        cells = {
            name: [_cell(line.get(layer), line.get(layer) is top[name]) for layer in layers]
            for name, line in lines.items()
        }
        heads = ["cut" if layer is None else layer for layer in layers]
        found.append({"attack": attack, "layers": heads, "lines": cells})
    return found


def _cell(course: Course | None, top: bool) -> dict[str, Any]:
    if course is None:
        return {"text": _NONE, "chance": "", "tone": "", "top": False}
    middle, tail = course.median, course.tail
    text = f"{middle.value:.2f}" + ("" if tail is None else f" / {tail.value:.2f}")
    chance = GUESSING if middle.chance is None else middle.chance
    return {"text": text, "chance": f"{chance:.2f}", "tone": "leaks" if middle.beats_chance() else "", "top": top}
