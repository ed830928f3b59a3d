"""Characteristic: the section that compares defences over their strengths, by curves and by one number each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

from leaktight.core.display import capital
from leaktight.core.metric import Reading
from leaktight.findings.characteristic import BOUND, CONDITION, Curve, Spot, leading_curves
from leaktight.findings.column import format_reading
from leaktight.findings.display import STAGES
from leaktight.findings.kind import distances
from leaktight.report.chart import Figure
from leaktight.report.curve import Scales, chart_of
from leaktight.report.page import Page, Section
from leaktight.report.regions import REGIONS, figure, pairs_of
from leaktight.statistics.pooling import high, low

MOST_FIGURES = 12
NONE = "-"


def characteristic_section(page: Page) -> Section | None:
    """Show the characteristic of each defence that was measured at several strengths; None if none was."""
    curves = page.summary.curves
    if not curves:
        return None
    scenarios = dict.fromkeys(curve.scenario for curve in curves)
    by_scenario = {scenario: [curve for curve in curves if curve.scenario == scenario] for scenario in scenarios}
    scales = Scales.of([one for here in by_scenario.values() for one in leading_curves(here, page.summary.judgements)])
    before = 0
    blocks = []
    for scenario, here in by_scenario.items():
        chosen = leading_curves(here, page.summary.judgements)
        drawn = [(curve, chart) for curve in chosen if (chart := chart_of(curve, page.palette, scales))]
        figures = [
            Figure(
                f"plot-curve-{scenario}-{number}",
                f"{capital(curve.family)} over {curve.field}, under the attack {curve.attack}",
                chart,
            )
            for number, (curve, chart) in enumerate(drawn[: MOST_FIGURES - before])
        ]
        before += len(figures)
        blocks.append(
            {
                "scenario": scenario if len(scenarios) > 1 else None,
                "setting": chosen[0].spots[0].row.moment,
                "unpriced": chosen[0].spots[0].row.unpriced,
                "figures": figures,
                "left": len(drawn) - len(figures),
                "tables": cap_tables(here),
                "regions": regions_of(chosen),
                "pairs": _pairs(here, chosen, page),
            }
        )
    values = {"blocks": blocks, "titles": REGIONS}
    return Section("characteristic", "Privacy-preserving characteristic", "characteristic.html", values)


def cap_tables(curves: Sequence[Curve]) -> list[dict[str, Any]]:
    """Return a table of CAP for each stage: families by distance and batch size.

    Each CAP is under the attack that lowers it most.
    """
    return [
        _table([c for c in curves if c.stage == stage], stage)
        for stage in dict.fromkeys(c.stage for c in curves)
        if curves
    ]


def _table(curves: Sequence[Curve], stage: str) -> dict[str, Any]:
    sizes = sorted({curve.batch_size for curve in curves})
    aims = [aim for aim in distances() if any(aim in curve.caps for curve in curves)]
    columns = [(aim, size) for aim in aims for size in sizes]
    families = dict.fromkeys(curve.family for curve in curves)
    cells = {
        family: [
            _lowest([c for c in curves if c.family == family and c.batch_size == size], aim) for aim, size in columns
        ]
        for family in families
    }
    useless = {family: _useless([c for c in curves if c.family == family]) for family in families}
    marks = [
        _marks([None if useless[family] else cells[family][number] for family in families])
        for number in range(len(columns))
    ]
    alike = _are_alike([curve for curve in curves if not useless[curve.family]])
    if not alike:
        marks = [[""] * len(column) for column in marks]
    lines = [
        {
            "name": family,
            "over": _over(next(curve for curve in curves if curve.family == family)),
            "useless": useless[family],
            "cells": [
                (format_reading(cap, _hundredth), marks[number][line]) for number, cap in enumerate(cells[family])
            ],
        }
        for line, family in enumerate(families)
    ]
    attacks = list(dict.fromkeys(curve.attack for curve in curves))
    return {
        "stage": STAGES.get(stage, stage),
        "aims": aims,
        "sizes": sizes,
        "lines": lines,
        "attacks": attacks,
        "unlike": not alike and len(families) > 1,
    }


def _are_alike(curves: Sequence[Curve]) -> bool:
    """Return whether all defences have the same share of their strengths in each region: a mean over others is another.

    Strengths without a ratio are in none.
    """
    shares = set()
    for curve in curves:
        counts = Counter(spot.region for spot in curve.spots)
        shares.add(frozenset((name, Fraction(count, len(curve.spots))) for name, count in counts.items()))
    return len(shares) <= 1


def _useless(curves: Sequence[Curve]) -> int:
    """Return at how many strengths of a defence the model learned nothing: what it gains there is gained by nothing."""
    return len({spot.strength for curve in curves for spot in curve.spots if spot.row.useless})


def _lowest(curves: Iterable[Curve], aim: str) -> Reading | None:
    return min((curve.caps[aim] for curve in curves if aim in curve.caps), key=lambda cap: cap.value, default=None)


def _marks(column: Sequence[Reading | None]) -> list[str]:
    """Mark the highest CAP of a column, unless several share it.

    The mark is `best` where no other interval reaches it, else `highest`.
    """
    caps = sorted((cap for cap in column if cap is not None), key=lambda cap: -cap.value)
    if len(caps) < 2 or _hundredth(caps[0].value) == _hundredth(caps[1].value):
        return [""] * len(column)
    top = caps[0]
    clear = all(cap is top or high(cap) < low(top) for cap in caps)
    return [("best" if clear else "highest") if cap is top else "" for cap in column]


def _over(curve: Curve) -> str:
    first, last = curve.spots[0].strength, curve.spots[-1].strength
    return f"{len(curve.spots)} strengths, {curve.field} {first:g} to {last:g}"


def regions_of(curves: Sequence[Curve]) -> list[dict[str, str]]:
    """Return for each region what was measured of the theorem's condition and bound, and of the attack's error."""
    spots = list({id(spot.row): spot for curve in curves for spot in curve.spots}.values())
    found = []
    for name in REGIONS:
        here = [spot for spot in spots if spot.region == name]
        if here:
            found.append({"name": name, "strengths": str(len(here)), **_measurements(here)})
    return found


def _measurements(spots: Sequence[Spot]) -> dict[str, str]:
    conditions = [reading for spot in spots if (reading := spot.row.reading(CONDITION))]
    messages = sum(reading.n for reading in conditions)
    held = round(sum(reading.n * reading.value for reading in conditions))
    bounds = [reading.value for spot in spots if (reading := spot.row.reading(BOUND))]
    errors = [reading.value for spot in spots if (reading := spot.distance("reconstruction"))]
    return {
        "condition": f"{held} of {messages} messages" if messages else NONE,
        "bound": _span(bounds),
        "error": _span(errors),
    }


def _span(values: Sequence[float]) -> str:
    if not values:
        return NONE
    ends = [figure(end) for end in (min(values), max(values))]
    return ends[0] if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}"


def _pairs(curves: Sequence[Curve], chosen: Sequence[Curve], page: Page) -> dict[str, Any] | None:
    """Return the pictures of one attack: the one that the most figures show."""
    attacks = [curve.attack for curve in chosen]
    attack = max(dict.fromkeys(attacks), key=attacks.count)
    first = chosen[0]
    alike = [c for c in curves if (c.attack, c.batch_size, c.stage) == (attack, first.batch_size, first.stage)]
    pairs = pairs_of(alike, page)
    return {"attack": attack, "regions": pairs} if pairs else None


def _hundredth(value: float) -> str:
    return f"{value:.2f}"
