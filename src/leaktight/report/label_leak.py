"""Labels over training: how well each attack tells labels, step by step, at each layer, under each defence."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from statistics import fmean, median
from typing import Any

import plotly.graph_objects as go

from leaktight.core.defence import is_undefended
from leaktight.core.metric import Reading
from leaktight.core.record import Cell, Record, Status
from leaktight.core.scenario import spread_evenly
from leaktight.findings.display import family_of, name_of
from leaktight.findings.label_leak import GUESSING, LEAK_AUC, PASSES, TAIL, place_of, strongest_layer, weight
from leaktight.findings.passes import BESIDE, LabelPasses, passes_of
from leaktight.findings.rows import Row
from leaktight.report.page import Page, Section
from leaktight.report.plots import COLOURS, escaped, layout, plain_figure

MOST_FIGURES = 12
FIRST, SMALL = 460, 260
BARE = "#6b7280"
_NONE = "-"


@dataclasses.dataclass(frozen=True)
class LeakCurve:
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
        curves = [
            curve for row in rows for curve in leak_curves(row, [records[key] for key in row.cells if key in records])
        ]
        panels = _panels(curves)
        captions: dict[str, str] = {}
        for place, panel in enumerate(panels.values()):
            if len(plots) < MOST_FIGURES and any(curve.values for curve in panel):
                name = f"plot-labels-{number}-{place}"
                plots[name] = figure_of(panel, height=FIRST if not captions else SMALL)
                captions[name] = _caption(panel[0])
        over_passes = [found for row in rows if (found := passes_of(row)) is not None]
        figure = f"plot-passes-{number}" if any(len(one.curve) > 1 for one in over_passes) else ""
        if figure:
            plots[figure] = passes_figure(over_passes)
        block = {
            "setting": rows[0].setting,
            "captions": captions,
            "left": len(panels) - len(captions),
            "passes": [_passes(one) for one in over_passes],
            "beside": list(BESIDE.values()),
            "curve": figure,
            "key": legend_of(rows) if captions or figure else [],
            "tables": _tables(curves),
        }
        blocks.append(block)
    values = {"blocks": blocks, "several": len(blocks) > 1, "redact": page.redact}
    return Section("labels", "Labels over training", "labels.html", values, plots)


def leak_curves(row: Row, records: Sequence[Record]) -> list[LeakCurve]:
    """Return the curve at each layer that a row was measured at, in the order of its readings."""
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
        found.append(LeakCurve(row, found_at, tails.get(found_at.layer), steps, values))
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
    shares = cell.scenario.when(count) if count == cell.victims else spread_evenly(count)
    return tuple(100 * share for share in shares)


def smooth(values: Sequence[float]) -> list[float]:
    """Return the running median over about a tenth of the steps, fewer near the ends.

    Of a few steps, return the values themselves.

    Example:
        >>> smooth([0.5, 0.9, 0.6]), smooth([0.5] * 10 + [1.0] + [0.5] * 29)[10]
        ([0.5, 0.9, 0.6], 0.5)
    """
    reach = len(values) // 20
    return [median(values[max(0, at - reach) : at + reach + 1]) for at in range(len(values))]


def figure_of(panel: Sequence[LeakCurve], height: int = SMALL) -> dict[str, Any]:
    """Return a line for each defence, and to the right of it its median (dot) and 95 % quantile (triangle)."""
    figure = go.Figure()
    shades = _shades([curve.row for curve in panel])
    end = max(step for curve in panel for step in curve.steps)
    rim = end * 1.04 + 0.5
    for curve in panel:
        colour, opacity = shades[curve.row.defence.key]
        name = escaped(name_of(curve.row.defence))
        shared = {"name": name, "opacity": opacity}
        figure.add_trace(
            go.Scatter(
                **shared,
                x=curve.steps,
                y=smooth(curve.values),
                mode="lines",
                line={"color": colour, "width": 1.6},
                hovertemplate=f"{name}<br>AUC %{{y:.2f}} at %{{x:.3g}}<extra></extra>",
            )
        )
        figure.add_trace(_ends(curve, rim, colour, shared))
    chance = _chance(panel)
    figure.add_hline(y=chance, line={"color": BARE, "dash": "dash", "width": 1.2})
    lowest = min([chance, *(value for curve in panel for value in smooth(curve.values))])
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
        if one.curve:
            best[one.row.defence.key] = one
    for key, one in best.items():
        colour, opacity = shades[key]
        name = escaped(name_of(one.row.defence))
        figure.add_trace(
            go.Scatter(
                name=name,
                opacity=opacity,
                x=list(range(1, len(one.curve) + 1)),
                y=one.curve,
                mode="lines+markers",
                line={"color": colour, "width": 1.6},
                hovertemplate=f"{name}, {escaped(one.row.attack)}<br>AUC %{{y:.2f}} after %{{x}} passes<extra></extra>",
            )
        )
    figure.add_hline(y=GUESSING, line={"color": BARE, "dash": "dash", "width": 1.2})
    figure.update_layout(**{**layout(height=height), "showlegend": False})
    lowest = min([GUESSING, *(value for one in best.values() for value in one.curve)])
    figure.update_xaxes(title_text="passes over the data", rangemode="tozero")
    figure.update_yaxes(title_text="leak AUC", range=[max(-0.02, lowest - 0.04), 1.03], dtick=0.1)
    return plain_figure(figure)


def _passes(one: LabelPasses) -> dict[str, Any]:
    cells = [f"{one.aucs[name].value:.2f}" if name in one.aucs else _NONE for name in BESIDE]
    where = f"{one.row.attack}, {one.place}" + (f", {len(one.curve)} passes" if one.curve else "")
    judged = strongest_layer(one.row.readings)
    return {
        "name": name_of(one.row.defence),
        "where": where,
        "cells": list(zip(BESIDE, cells, strict=True)),
        "tone": "leaks" if judged is not None and judged.beats_chance() else "",
    }


def _ends(curve: LeakCurve, rim: float, colour: str, shared: dict[str, Any]) -> go.Scatter:
    marked = [(curve.median, "circle", "median")] + (
        [(curve.tail, "triangle-up", "95 % quantile")] if curve.tail else []
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


def _panels(curves: Iterable[LeakCurve]) -> dict[tuple[str, str | None], list[LeakCurve]]:
    """Return the curves of each attack and layer; the cut before all others, then layer by layer."""
    found: dict[tuple[str, str | None], list[LeakCurve]] = {}
    for curve in curves:
        found.setdefault((curve.row.attack, curve.median.layer), []).append(curve)
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


def _chance(panel: Sequence[LeakCurve]) -> float:
    return max(GUESSING if curve.median.chance is None else curve.median.chance for curve in panel)


def _caption(curve: LeakCurve) -> str:
    return f"{curve.row.attack}, {place_of(curve.median)}"


def _tables(curves: Sequence[LeakCurve]) -> list[dict[str, Any]]:
    """Return a table for each attack: defences by layers, each with median and 95 % quantile."""
    found = []
    for attack in dict.fromkeys(curve.row.attack for curve in curves):
        here = [curve for curve in curves if curve.row.attack == attack]
        layers = list(dict.fromkeys(curve.median.layer for curve in here))
        lines: dict[str, dict[str | None, LeakCurve]] = {}
        for curve in here:
            lines.setdefault(name_of(curve.row.defence), {})[curve.median.layer] = curve
        top = {name: max(line.values(), key=lambda curve: weight(curve.median)) for name, line in lines.items()}
        cells = {
            name: [_cell(line.get(layer), line.get(layer) is top[name]) for layer in layers]
            for name, line in lines.items()
        }
        heads = ["cut" if layer is None else layer for layer in layers]
        found.append({"attack": attack, "layers": heads, "lines": cells})
    return found


def _cell(curve: LeakCurve | None, top: bool) -> dict[str, Any]:
    if curve is None:
        return {"text": _NONE, "chance": "", "tone": "", "top": False}
    middle, tail = curve.median, curve.tail
    text = f"{middle.value:.2f}" + ("" if tail is None else f" / {tail.value:.2f}")
    chance = GUESSING if middle.chance is None else middle.chance
    return {"text": text, "chance": f"{chance:.2f}", "tone": "leaks" if middle.beats_chance() else "", "top": top}
