"""Trade-off: what a model is worth against what leaks, and what leaks over the strength of each defence."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from leaktight.core.defence import is_undefended
from leaktight.core.display import capital
from leaktight.core.metric import Reading
from leaktight.findings.display import family_of, name_of, strength_of
from leaktight.findings.kind import LeakKind
from leaktight.findings.rows import Row
from leaktight.findings.sweep import sweeps
from leaktight.findings.utility import ACCURACY, utility_name, utility_text
from leaktight.findings.verdict import Judgement
from leaktight.report.chart import Chart, Figure, Panel, Point, Series, named, scale
from leaktight.report.page import Page, Section
from leaktight.report.palette import Palette
from leaktight.statistics.pooling import high, low

_TABLE = "The numbers are in the table of every number."


@dataclasses.dataclass(frozen=True)
class TradeoffCurve:
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

    @property
    def is_bare(self) -> bool:
        """Whether it is that of no defence."""
        return is_undefended(self.rows[0].defence)


def lines_of(judged: Sequence[Judgement]) -> list[TradeoffCurve]:
    """Return the lines of a plot.

    A number may be swept anywhere in a defence, in a link of a chain or in what a guard applies.
    """
    rows = {judgement.defence.key: judgement.worst for judgement in judged}
    found = [
        TradeoffCurve(
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
        TradeoffCurve(
            family_of(defence),
            defence.strength.field.replace("_", " ") if defence.strength else "",
            (strength_of(defence),),
            (rows[defence.key],),
        )
        for defence in alone
    ]


def tradeoff_section(page: Page) -> Section | None:
    """Show accuracy against leakage for each defence and strength, and leakage over strength for each kind."""
    figures: list[Figure] = []
    charted = [judgement for judgement in page.summary.judgements if judgement.charted]
    scenarios = {judgement.scenario for judgement in charted}
    for scenario, kind in dict.fromkeys((judgement.scenario, judgement.kind) for judgement in charted):
        judged = [j for j in charted if (j.scenario, j.kind) == (scenario, kind)]
        suffix = f", scenario {scenario}" if len(scenarios) > 1 else ""
        place = f"{scenario}-{kind.kind}"
        chart = tradeoff(judged, page.palette)
        if chart is not None:
            utility = next((j.worst.utility for j in judged if j.worst.utility is not None), None)
            caption = f"{capital(utility_name(utility))} against {kind.chart}{suffix}"
            figures.append(Figure(f"plot-tradeoff-{place}", caption, chart, wide=True))
        for number, line in enumerate(swept(kind, judged)):
            caption = f"{capital(line.name)}: {kind.chart} over strength{suffix}"
            figures.append(Figure(f"plot-strength-{place}-{number}", caption, over_strength(kind, line, page.palette)))
    if not figures:
        return None
    values = {"figures": figures, "chance": any(figure.chart.has_chance for figure in figures)}
    return Section("trade-off", "Protection against usefulness", "tradeoff.html", values)


def tradeoff(judged: Sequence[Judgement], palette: Palette) -> Chart | None:
    """Return accuracy against what the strongest attack gets of one kind of leak: a line for each kind of defence.

    Each line is named at its strong end. Where all have one chance level it is a line, else a tick at each point.
    """
    placed = [
        (j, drawn)
        for j in judged
        if j.worst.utility is not None and (drawn := j.kind.chart_reading(j.worst)) is not None
    ]
    placed = [(j, drawn) for j, drawn in placed if drawn.name == placed[0][1].name]
    if len(placed) < 2:
        return None
    kind, leaks = placed[0][0].kind, [reading for _, reading in placed]
    axis = kind.tradeoff_axis(leaks)
    level = common_chance(leaks)
    # The undefended point comes last, so that no other covers it.
    lines = sorted(lines_of([j for j, _ in placed]), key=lambda line: line.is_bare)
    series = tuple(_series(kind, line, palette, axis.scale, level is None) for line in lines)
    use = placed[0][0].worst.utility
    utilities = [j.worst.utility for j, _ in placed if j.worst.utility is not None]
    x = scale(
        f"{utility_name(use)} of the trained model",
        [unit(reading) * end for reading in utilities for end in (low(reading), high(reading))],
        " %" if unit(use) > 1 else "",
    )
    y = scale(axis.title, _ends(leaks, axis.scale), axis.suffix, axis.ends)
    about = f"{capital(utility_name(use))} of the model against {axis.title}, for each defence. {_TABLE}"
    panel = Panel(y, series, 330, None if level is None else axis.scale * level)
    return Chart(x, (panel,), about)


def common_chance(readings: Sequence[Reading]) -> float | None:
    """Return the chance level that all readings share; None if they differ or one has none."""
    chances = {reading.chance if reading.chance is None else round(reading.chance, 6) for reading in readings}
    return chances.pop() if len(chances) == 1 else None


def _ends(readings: Sequence[Reading], times: float) -> list[float]:
    values = [end for reading in readings for end in (low(reading), high(reading), reading.chance) if end is not None]
    return [times * value for value in values]


def _series(kind: LeakKind, line: TradeoffCurve, palette: Palette, times: float, ticks: bool) -> Series:
    points = []
    for number, (value, row) in enumerate(zip(line.values, line.rows, strict=True)):
        utility, leak = row.utility, kind.chart_reading(row)
        if utility is None or leak is None:
            continue
        ends = unit(utility)
        strength = "" if value is None or not line.field else f"{line.field} {value:g}"
        label = line.name if number == len(line.rows) - 1 else ""
        if number == 0 or label:
            label = " ".join(filter(None, (label, strength if label else strength.removeprefix(f"{line.field} "))))
        points.append(
            Point(
                x=ends * utility.value,
                y=times * leak.value,
                low=None if leak.low is None else times * leak.low,
                high=None if leak.high is None else times * leak.high,
                left=None if utility.low is None else ends * utility.low,
                right=None if utility.high is None else ends * utility.high,
                chance=times * leak.chance if ticks and leak.chance is not None else None,
                tip=tip_of(kind, row),
                label=label,
            )
        )
    return Series(
        line.name,
        palette.colour_of(line.name),
        tuple(points),
        palette.symbol_of(line.name),
        "dots" if points[1:] else "",
    )


def over_strength(kind: LeakKind, line: TradeoffCurve, palette: Palette) -> Chart:
    """Return what the strongest attack gets of one kind of defence, from off to strong.

    A grey tick is the chance level of each point: another attack may be the strongest at each.
    """
    readings = [reading for row in line.rows if (reading := _gradual(kind, row)) is not None]
    axis = kind.strength_axis(readings)
    level = common_chance(readings)
    points = tuple(
        Point(
            x=float(place),
            y=axis.scale * reading.value,
            low=None if reading.low is None else axis.scale * reading.low,
            high=None if reading.high is None else axis.scale * reading.high,
            chance=None if level is not None or reading.chance is None else axis.scale * reading.chance,
            tip=tip_of(kind, row),
        )
        for place, (row, reading) in enumerate(zip(line.rows, readings, strict=True))
    )
    x = named(f"{line.field or 'strength'} (weak to strong)", ["none" if v is None else f"{v:g}" for v in line.values])
    y = scale(axis.title, [0.0, *_ends(readings, axis.scale)], axis.suffix, axis.ends, most=5)
    series = Series(line.name, palette.colour_of(line.name), points, palette.symbol_of(line.name))
    panel = Panel(y, (series,), 150, None if level is None else axis.scale * level)
    return Chart(x, (panel,), f"{capital(axis.title)} over the {line.field or 'strength'} of {line.name}. {_TABLE}")


def swept(kind: LeakKind, judged: Sequence[Judgement]) -> list[TradeoffCurve]:
    """Return the lines over at least two strengths, each from no defence on, whose points all have the same reading."""
    bare = tuple(j.worst for j in judged if is_undefended(j.defence))[:1]
    lines = [
        dataclasses.replace(line, values=(*[None] * len(bare), *line.values), rows=(*bare, *line.rows))
        for line in lines_of(judged)
        if None not in line.values and len(line.rows) > 1
    ]
    return [line for line in lines if len({_name(_gradual(kind, row)) for row in line.rows}) == 1]


def _name(reading: Reading | None) -> str:
    return "" if reading is None else reading.name


def _gradual(kind: LeakKind, row: Row) -> Reading | None:
    """Return a reading that moves before the one that decides does, where there is one."""
    return kind.finer(row) or kind.chart_reading(row)


def unit(utility: Reading | None) -> float:
    """Return what a utility is drawn in: an AUC as it is, a share in percent."""
    return 100 if utility is None or utility.name == ACCURACY else 1


def tip_of(kind: LeakKind, row: Row) -> str:
    """Say beside a point what it is: the defence, the strongest attack, what it read, and what the model is worth."""
    lines = [name_of(row.defence), f"strongest attack: {row.attack}", *kind.hover(row)]
    if row.utility is not None:
        lines.append(f"{utility_name(row.utility)}: {utility_text(row.utility)}")
    return "\n".join(lines)
