"""Characteristic: how a model's use and an attack's error change as one defence gets stronger (PPC).

The mean product of the two is the CAP.
"""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Iterable, Mapping, Sequence

from leaktight.core.defence import is_undefended
from leaktight.core.metric import Reading
from leaktight.findings.kind import distances
from leaktight.findings.rows import RATIOS, Row
from leaktight.findings.sweep import StrengthSweep, sweeps
from leaktight.findings.verdict import Judgement
from leaktight.metrics.tradeoff import Point, Region, cap, cap_interval, region

CONDITION, BOUND = "theorem_condition", "theorem_bound"


@dataclasses.dataclass(frozen=True)
class Spot:
    """One strength of a swept defence.

    Args:
        strength: the swept number.
        row: what was measured there.
    """

    strength: float
    row: Row

    @property
    def ratio(self) -> Reading | None:
        """The size of the gradient beside what the defence added to it, ||B|| / ||E_B||; None in records without it.

        It is the paper's, over biases; where a defence leaves these alone, that over the body or the whole message.
        """
        return ratio_of(self.row.readings)

    @property
    def region(self) -> Region | None:
        """The paper's region of that ratio."""
        return None if self.ratio is None else region(self.ratio.value)

    def distance(self, aim: str) -> Reading | None:
        """Return how far from the truth the attack stays, by what it is after."""
        name = distances()[aim]
        return self.row.reading(name, "raw") or self.row.reading(name)


@dataclasses.dataclass(frozen=True)
class Curve:
    """The privacy-preserving characteristic of one defence under one attack in one setting.

    Args:
        scenario: number of the scenario, from 1.
        family: the defence without the number that is swept.
        field: what is swept.
        attack: how the report names the attack.
        batch_size: examples behind one local step of one participant.
        stage: when in training it was measured.
        spots: at least two, from weak to strong where the defence says which way that is.
        base: the same without defence: the reference, not a part of the curve; None if it was not measured.
        caps: for each distance that was measured, the calibrated averaged performance; `n` is its number of strengths.
            None where the model is no use even without defence: a product with nothing says nothing.
    """

    scenario: int
    family: str
    field: str
    attack: str
    batch_size: int
    stage: str
    spots: tuple[Spot, ...]
    base: Row | None
    caps: Mapping[str, Reading]


def ratio_of(readings: Iterable[Reading]) -> Reading | None:
    """Return the paper's ratio of those that were read, or the next best; None if there is none."""
    by_name = {reading.name: reading for reading in readings if reading.layer is None}
    return next((by_name[name] for name in RATIOS if name in by_name), None)


def curves_of(rows: Sequence[Row]) -> tuple[Curve, ...]:
    """Return a curve for every defence that was measured at several strengths, for each attack and setting.

    Where defences have no price (`Row.unpriced`), it is one of distances alone, without CAP.

    Example:
        >>> curves_of(())
        ()
    """
    groups: dict[tuple[int, str, int, str], list[Row]] = {}
    for row in rows:
        if (row.utility is not None or row.unpriced) and any(Spot(0, row).distance(aim) for aim in distances()):
            groups.setdefault((row.scenario, row.attack, row.batch_size, row.stage), []).append(row)
    return tuple(curve for group in groups.values() for curve in _curves(group))


def leading_curves(curves: Sequence[Curve], judgements: Sequence[Judgement]) -> tuple[Curve, ...]:
    """Return one curve for each scenario and defence.

    It is the curve of the setting that leaks most undefended, under the attack that ends closest there.

    Args:
        curves: those of all attacks and settings.
        judgements: what was found about no defence, which says where most leaks.
    """
    open_judgements = [j for j in judgements if is_undefended(j.defence) and j.charted and j.kind.of_examples]
    bare = {j.scenario: (j.worst.batch_size, j.worst.stage) for j in open_judgements}
    groups: dict[tuple[int, str], list[Curve]] = {}
    for scenario in dict.fromkeys(curve.scenario for curve in curves):
        here = [curve for curve in curves if curve.scenario == scenario]
        places = [(curve.batch_size, curve.stage) for curve in here]
        place = bare[scenario] if bare.get(scenario) in places else places[0]
        for curve, where in zip(here, places, strict=True):
            if where == place:
                groups.setdefault((scenario, curve.family), []).append(curve)
    return tuple(min(group, key=_closeness) for group in groups.values())


def _closeness(curve: Curve) -> float:
    """Return what is least under the strongest attack: CAP, or the mean distance where there is none."""
    if curve.caps:
        return next(curve.caps[aim].value for aim in distances() if aim in curve.caps)
    measured = ([spot.distance(aim) for spot in curve.spots] for aim in distances())
    whole = next(([d.value for d in found if d is not None] for found in measured if all(found)), [])
    return statistics.fmean(whole) if whole else float("inf")


def _curves(group: Sequence[Row]) -> list[Curve]:
    by_defence = {row.defence.key: row for row in group}
    base = next((row for row in group if is_undefended(row.defence)), None)
    return [_curve(sweep, by_defence, base) for sweep in sweeps([row.defence for row in group])]


def _curve(sweep: StrengthSweep, by_defence: Mapping[str, Row], base: Row | None) -> Curve:
    spots = tuple(Spot(value, by_defence[defence.key]) for value, defence in sweep.members)
    first = spots[0].row
    caps = {aim: found for aim in distances() if (found := _cap(spots, aim))}
    return Curve(
        first.scenario, sweep.family, sweep.field, first.attack, first.batch_size, first.stage, spots, base, caps
    )


def _cap(spots: Sequence[Spot], aim: str) -> Reading | None:
    """Return the calibrated averaged performance over all strengths; None if one lacks this distance."""
    if any(spot.row.unpriced for spot in spots):
        return None
    points = [
        Point(utility, distance, spot.strength, spot.ratio.value if spot.ratio else None)
        for spot in spots
        if (utility := spot.row.utility) and (distance := spot.distance(aim))
    ]
    return cap_reading(aim, points, len(spots))


def cap_reading(aim: str, points: Sequence[Point], strengths: int) -> Reading | None:
    """Return the calibrated averaged performance; None if a strength lacks its point.

    A mean over fewer points would be another number.

    Args:
        aim: what the attack is after, one of `distances`.
        points: the characteristic.
        strengths: how many points it should have.
    """
    if not points or len(points) < strengths:
        return None
    low, high = cap_interval(points)
    return Reading(name=f"cap_{aim}", value=cap(points), low=low, high=high, n=len(points))
