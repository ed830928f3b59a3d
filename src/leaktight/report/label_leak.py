"""Labels over training: how well each attack tells labels, step by step, at each layer, under each defence."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from statistics import fmean, median
from typing import Any

from leaktight.core.metric import Reading
from leaktight.core.record import Cell, Record, Status
from leaktight.core.scenario import spread_evenly
from leaktight.findings.auc import chance_of, excess, weight
from leaktight.findings.display import name_of
from leaktight.findings.label_leak import LEAK_AUC, PASSES, TAIL, place_of, strongest_layer
from leaktight.findings.passes import BESIDE, LabelPasses, passes_of
from leaktight.findings.rows import Row
from leaktight.report.chart import Band, Chart, Figure, Panel, Point, Series, scale
from leaktight.report.page import Page, Section
from leaktight.report.palette import Palette
from leaktight.statistics.auc import GUESSING

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
    for row in (one for whole in page.summary.rows for one in (whole, *whole.alone)):
        if any(reading.name in (LEAK_AUC, PASSES) for reading in row.readings):
            groups.setdefault((row.scenario, row.batch_size, row.stage), []).append(row)
    if not groups:
        return None
    records = {record.cell.key: record for record in page.records}
    judged = [judgement.worst for judgement in page.summary.judgements]
    blocks = []
    for number, rows in enumerate(groups.values()):
        curves = [
            curve for row in rows for curve in leak_curves(row, [records[key] for key in row.cells if key in records])
        ]
        strongest = strongest_curves(curves)
        over_passes = [found for row in rows if (found := passes_of(row)) is not None]
        figures: list[Figure] = []
        over: list[Figure] = []
        if strongest:
            words = "Under each defence, the attack at the layer that tells most beyond chance"
            chart = chart_of(strongest, page.palette)
            figures.append(Figure(f"plot-labels-{number}", words, chart, wide=True))
        if any(len(one.curve) > 1 for one in over_passes):
            words = "Leak AUC over passes, under the attack that tells most beyond chance"
            over.append(Figure(f"plot-passes-{number}", words, passes_chart(over_passes, page.palette), wide=True))
        block = {
            "setting": rows[0].setting,
            "figures": figures,
            "drawn": [_caption(curve) for curve in strongest],
            "passes": [_passes(one, any(one.row is row for row in judged)) for one in over_passes],
            "beside": list(BESIDE.values()),
            "curves": over,
            "tables": _tables(curves),
        }
        blocks.append(block)
    values = {"blocks": blocks, "several": len(blocks) > 1, "redact": page.redact}
    return Section("labels", "Labels over training", "labels.html", values)


def leak_curves(row: Row, records: Sequence[Record]) -> list[LeakCurve]:
    """Return the curve at each layer that a row was measured at, in the order of its readings."""
    tails = {reading.layer: reading for reading in row.readings if reading.name == TAIL}
    done = [record for record in records if record.status is Status.DONE]
    by = row.attack if row.suite else ""
    found = []
    for found_at in (reading for reading in row.readings if reading.name == LEAK_AUC):
        each = [
            r.each
            for record in done
            for r in record.readings
            if (r.name, r.layer, r.by) == (LEAK_AUC, found_at.layer, by) and r.each
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


def chart_of(panel: Sequence[LeakCurve], palette: Palette) -> Chart:
    """Return a line for each defence over the training, and in a strip of its own what all steps come to.

    Every line is drawn as what it tells beyond its own chance level, as a part of all there is: attacks, layers and
    defences have chance levels of their own.
    """
    end = max(step for curve in panel for step in curve.steps)
    strip = end * 1.06
    series = []
    for curve in panel:
        name, colour = name_of(curve.row.defence), palette.colour_for(curve.row.defence)
        line = tuple(
            Point(step, _beyond(value, curve.median))
            for step, value in zip(curve.steps, smooth(curve.values), strict=True)
        )
        series.append(Series(name, colour, line, "", palette.stroke_for(curve.row.defence)))
        middle = Point(
            strip,
            _beyond(curve.median.value, curve.median),
            *_beyond_ends(curve.median),
            tip=f"{name}\nmedian over all steps: AUC {curve.median.value:.2f}, chance {chance_of(curve.median):.2f}",
        )
        series.append(Series("", colour, (middle,), "circle", "", tag=name))
        if curve.tail is not None:
            worst = f"{name}\n95 % quantile over all steps: AUC {curve.tail.value:.2f}"
            above = Point(strip, _beyond(curve.tail.value, curve.tail), tip=worst)
            series.append(Series("", colour, (above,), "up", ""))
    training = panel[0].row.stage == "training"
    x = scale("share of the training" if training else "step", (), " %" if training else "", (0, end))
    x = x._replace(high=end * 1.1, ticks=(*x.ticks, (strip, "all")))
    lowest = min([0.0, *(point.y for one in series for point in one.points)])
    y = scale("told beyond chance (0 % is guessing, 100 % every label)", (), " %", (min(-4.0, lowest - 4), 104))
    about = "What attacks tell of the labels beyond chance over the training, a line for each defence."
    bands = (Band(end * 1.03, end * 1.1, "", 1),)
    return Chart(x, (Panel(y, tuple(series), 300, 0.0),), about, bands)


def _beyond(value: float, reading: Reading) -> float:
    """Return what an AUC tells beyond the chance level of a reading, in percent of all there is."""
    return 100 * excess(reading.model_copy(update={"value": value}))


def _beyond_ends(reading: Reading) -> tuple[float | None, float | None]:
    low, high = (None if end is None else _beyond(end, reading) for end in (reading.low, reading.high))
    return low, high


def passes_chart(over_passes: Sequence[LabelPasses], palette: Palette) -> Chart:
    """Return the AUC over passes for each defence.

    It is that of the attack that tells most beyond its chance level in the end. A chance level that all share is a
    line, else a tick at the end of each: what the attacker's own features tell needs no message.
    """
    best: dict[str, LabelPasses] = {}
    for one in sorted(over_passes, key=lambda one: weight(strongest_layer(one.row.readings) or one.aucs[PASSES])):
        if one.curve:
            best[one.row.defence.key] = one
    chances = {key: chance_of(strongest_layer(one.row.readings) or one.aucs[PASSES]) for key, one in best.items()}
    level = next(iter(chances.values())) if len({round(chance, 6) for chance in chances.values()}) == 1 else None
    series = []
    for key, one in best.items():
        name, colour = name_of(one.row.defence), palette.colour_for(one.row.defence)
        points = [
            Point(float(number), value, tip=f"{name}, {one.row.attack}\nAUC {value:.2f} after {number} passes")
            for number, value in enumerate(one.curve, start=1)
        ]
        points[-1] = points[-1]._replace(chance=chances[key] if level is None else None)
        series.append(Series(name, colour, tuple(points), "circle", palette.stroke_for(one.row.defence), tag=name))
    most = max((len(one.curve) for one in best.values()), default=1)
    lowest = min([GUESSING, *chances.values(), *(value for one in best.values() for value in one.curve)])
    x = scale("passes over the data", (), ends=(0, most))
    x = x._replace(ticks=tuple((value, f"{value:.0f}") for value, _ in x.ticks if value == round(value)))
    y = scale("leak AUC", (), ends=(max(-0.02, lowest - 0.04), 1.03))
    about = "Leak AUC over passes for each defence; the numbers are in the table below."
    return Chart(x, (Panel(y, tuple(series), 240, level),), about)


def _passes(one: LabelPasses, decides: bool) -> dict[str, Any]:
    cells = [f"{one.aucs[name].value:.2f}" if name in one.aucs else _NONE for name in BESIDE]
    where = f"{one.row.title}, {one.place}" + (f", {len(one.curve)} passes" if one.curve else "")
    judged = strongest_layer(one.row.readings)
    return {
        "name": name_of(one.row.defence),
        "where": where,
        "cells": list(zip(BESIDE, cells, strict=True)),
        "judged": decides,
        "folded": bool(one.row.suite) and not decides,
        "tone": "leaks" if judged is not None and judged.beats_chance() else "",
    }


def strongest_curves(curves: Iterable[LeakCurve]) -> list[LeakCurve]:
    """Return for each defence the curve of the attack and layer that tells most, of those whose steps are known."""
    found: dict[str, list[LeakCurve]] = {}
    for curve in curves:
        if curve.values:
            found.setdefault(curve.row.defence.key, []).append(curve)
    return [max(some, key=lambda curve: weight(curve.median, curve.tail)) for some in found.values()]


def _caption(curve: LeakCurve) -> str:
    """Say which attack and layer is drawn of a defence."""
    return f"{name_of(curve.row.defence)}: {curve.row.title}, {place_of(curve.median)}"


def _tables(curves: Sequence[LeakCurve]) -> list[dict[str, Any]]:
    """Return a table for each attack: defences by layers, each with median and 95 % quantile."""
    found = []
    for attack in dict.fromkeys(curve.row.title for curve in curves):
        here = [curve for curve in curves if curve.row.title == attack]
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
        found.append({"attack": attack, "layers": heads, "lines": cells, "folded": bool(here[0].row.suite)})
    return found


def _cell(curve: LeakCurve | None, top: bool) -> dict[str, Any]:
    if curve is None:
        return {"text": _NONE, "chance": "", "tone": "", "top": False, "heat": 0.0}
    middle, tail = curve.median, curve.tail
    text = f"{middle.value:.2f}" + ("" if tail is None else f" / {tail.value:.2f}")
    return {
        "text": text,
        "chance": f"{chance_of(middle):.2f}",
        "tone": "leaks" if middle.beats_chance() else "",
        "top": top,
        "heat": min(1.0, max(0.0, excess(middle))) if middle.beats_chance() else 0.0,
    }
