"""Curve: the chart of one privacy-preserving characteristic, after the paper's figure 5."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from leaktight.core.display import percent
from leaktight.core.metric import Reading
from leaktight.findings.characteristic import Curve, Spot
from leaktight.findings.display import name_of
from leaktight.findings.kind import distances
from leaktight.findings.utility import utility_name
from leaktight.metrics.tradeoff import GREEN_BELOW, RED_ABOVE, abscissa
from leaktight.report.chart import Band, Chart, Panel, Point, Scale, Series, scale
from leaktight.report.palette import Palette

TITLES = {
    "reconstruction": "relative error of the attack",
    "membership": "labels that the attack misses",
    "tracing": "not traced",
}
_PANEL = 130
# Errors that span more than this are drawn on a logarithmic axis, or the small ones could not be told apart.
_SPAN = 50


class Scales(NamedTuple):
    """The axes that all characteristics of a page share, so that defences can be compared.

    Args:
        reach: where the x axis ends.
        distances: the axis of each distance.
    """

    reach: float
    distances: dict[str, Scale]

    @classmethod
    def of(cls, curves: Sequence[Curve]) -> Scales:
        """Return axes that have room for all curves."""
        spots = [spot for curve in curves for spot in curve.spots if spot.ratio is not None]
        places = [abscissa(spot.ratio.value) for spot in spots if spot.ratio is not None]
        scales = {}
        for aim in distances():
            readings = [distance for spot in spots if (distance := spot.distance(aim)) is not None]
            if readings:
                scales[aim] = _distance_scale(aim, readings)
        return cls(max([1.06 * place for place in places] + [abscissa(RED_ABOVE) + 0.2]), scales)


def _distance_scale(aim: str, readings: Sequence[Reading]) -> Scale:
    if aim != "reconstruction":
        return scale(TITLES[aim], (), " %", (-4, 104))
    values = [reading.value for reading in readings]
    if min(values) > 0 and max(values) / min(values) > _SPAN:
        return scale(TITLES[aim], values, log=True)
    highs = [reading.value if reading.high is None else reading.high for reading in readings]
    return scale(TITLES[aim], [0.0, *highs], most=5)


def chart_of(curve: Curve, palette: Palette, scales: Scales | None = None) -> Chart | None:
    """Return utility and each distance over the ratio, each in a panel of its own.

    None if fewer than two strengths have a ratio. Without a utility that means anything, distances alone.

    Args:
        curve: what is drawn.
        palette: the colours of the page.
        scales: the axes that it shares with others; by default its own.
    """
    scales = scales or Scales.of([curve])
    placed = sorted((abscissa(ratio.value), number) for number, spot in enumerate(curve.spots) if (ratio := spot.ratio))
    spots = [(place, curve.spots[number]) for place, number in placed]
    aims = [aim for aim in distances() if spots and all(spot.distance(aim) for _, spot in spots)]
    if len(spots) < 2 or not aims:
        return None
    panels = [*_utility(curve, spots, palette)]
    for aim in aims:
        axis = scales.distances[aim]
        times = 1 if aim == "reconstruction" else 100
        readings = [(place, spot, spot.distance(aim)) for place, spot in spots]
        points = tuple(_point(place, found, times, _tip(spot, aim)) for place, spot, found in readings if found)
        panels.append(Panel(axis, (_line(curve, palette, points),), _PANEL))
    end = f"{spots[0][1].strength:g} (left) to {spots[-1][1].strength:g} (right)"
    x = Scale(f"log\N{SUBSCRIPT ONE}\N{SUBSCRIPT ZERO}(ratio + 1); {curve.field} {end}", -0.04, scales.reach, ())
    ticks = scale("", (), ends=(0, scales.reach)).ticks
    about = f"Usefulness and the attack's distance from the truth over the {curve.field} of {curve.family}."
    return Chart(x._replace(ticks=ticks), tuple(panels), about, bands_to(scales.reach), legend=False)


def bands_to(reach: float) -> tuple[Band, ...]:
    """Return the paper's regions: the darker, the stronger the perturbation."""
    return (
        Band(-0.04, abscissa(GREEN_BELOW), "strong", 2),
        Band(abscissa(GREEN_BELOW), abscissa(RED_ABOVE), "medium", 1),
        Band(abscissa(RED_ABOVE), reach, "weak", 0),
    )


def _utility(curve: Curve, spots: Sequence[tuple[float, Spot]], palette: Palette) -> list[Panel]:
    """Return the panel of what the model is worth; none where that means nothing."""
    uses = [(place, spot, spot.row.utility) for place, spot in spots if not spot.row.unpriced]
    points = [_point(place, use, 100, _tip(spot, "")) for place, spot, use in uses if use is not None]
    if not points:
        return []
    name = utility_name(next(use for _, _, use in uses if use is not None))
    base = curve.base.utility if curve.base is not None else None
    for number in (0, -1):
        points[number] = points[number]._replace(label=f"{spots[number][1].strength:g}")
    axis = scale(name, (), " %", (-4, 108))
    level = None if base is None else 100 * base.value
    return [Panel(axis, (_line(curve, palette, tuple(points)),), _PANEL, level, "without defence")]


def _line(curve: Curve, palette: Palette, points: tuple[Point, ...]) -> Series:
    return Series(curve.family, palette.colour_of(curve.family), points, palette.symbol_of(curve.family))


def _point(place: float, reading: Reading, times: float, tip: str) -> Point:
    low, high = (None if end is None else times * end for end in (reading.low, reading.high))
    return Point(place, times * reading.value, low, high, tip=tip)


def _tip(spot: Spot, aim: str) -> str:
    lines = [name_of(spot.row.defence)]
    if spot.ratio is not None:
        lines.append(f"ratio: {spot.ratio.value:.3g}")
    if spot.row.utility is not None and not spot.row.unpriced:
        lines.append(f"{utility_name(spot.row.utility)}: {percent(spot.row.utility.value)}")
    distance = spot.distance(aim) if aim else None
    if distance is not None:
        lines.append(f"{TITLES[aim]}: {distance.value:.3g}")
    return "\n".join(lines)
