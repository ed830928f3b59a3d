"""Mechanisms at equal ratio and at equal accuracy: what CAP, a mean over chosen strengths, cannot compare.

A table of our own. Between two measured strengths a number is read off the straight line over the logarithm of the
ratio, or over the accuracy; beyond them there is none.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

from leaktight.core.metric import Reading
from leaktight.papers.check import Check, above
from leaktight.papers.comparison import difference
from leaktight.papers.paper import Experiment
from leaktight.papers.polarization_network import audits, ppc
from leaktight.papers.polarization_network.mechanisms import GAUSSIAN, MECHANISMS, NONE, PPDL_05, PPDL_30, SPN
from leaktight.papers.polarization_network.scales import Study
from leaktight.papers.records import Records
from leaktight.papers.row import Row, columns, groups, number, reading_of, rows_where, value_at

RATIOS = (1.0, 10.0)
"""The edges of the paper's regions."""
LOSSES = (0.02, 0.05)
"""How far below the accuracy without a mechanism."""
BY_RATIO, BY_ACCURACY = "ratio", "accuracy lost"
SHOWN = ("accuracy", "reconstruction", "strongest_reconstruction", "membership", "strongest_membership", "tracing")
NOTE = (
    "At equal ratio mechanisms perturb biases alike; at equal accuracy they cost alike. Numbers are interpolated "
    "between measured strengths, with the wider of both intervals; a gap means that a mechanism's strengths do not "
    "reach so far."
)


def rows(studies: Sequence[Study], records: Records) -> list[Row]:
    """Return a row for each stage, level and mechanism, at batch 1."""
    found = []
    points = rows_where(ppc.rows(studies, records), batch_size=1)
    for (data_set, stage), own in groups(points, "data_set", "stage"):
        bare = value_at(own, "accuracy", mechanism=NONE)
        for mechanism in MECHANISMS:
            curve = rows_where(own, mechanism=mechanism.name)
            for at, level, place, wanted in _levels(bare):
                found.append(
                    {
                        "data_set": data_set,
                        "stage": stage,
                        "at": at,
                        "level": level,
                        "mechanism": mechanism.name,
                        **_at(curve, place, wanted),
                    }
                )
    return found


def checks(rows: Sequence[Row]) -> list[Check]:
    """Ask whether polarization hides more than the others where both cost the same, and perturb the same."""
    focus = audits.focus_of(rows)
    found = []
    for stage in (audits.INITIAL, audits.TRAINED):
        for at, level in ((BY_RATIO, RATIOS[0]), (BY_ACCURACY, LOSSES[1])):
            for other in (GAUSSIAN, PPDL_05, PPDL_30):
                place: Row = {"data_set": focus, "stage": stage, "at": at, "level": level}
                values = [value_at(rows, "strongest_reconstruction", mechanism=m, **place) for m in (SPN, other)]
                found.append(
                    above(
                        f"rMSE({SPN}) - rMSE({other}) at equal {at} ({level:g}), strongest attacker, {stage} network, "
                        f"{focus}",
                        difference(*values),
                        0,
                    )
                )
    return found


Place = Callable[[Row], float | None]
Level = tuple[str, float, Place, float | None]
"""How curves are compared: at which level of what, where a row lies on that axis, and what is wanted there."""


def _levels(bare: Reading | None) -> list[Level]:
    """Return the levels at which curves are compared."""

    def ratio(row: Row) -> float | None:
        value = number(row, "ratio")
        return None if value is None or value <= 0 else math.log(value)

    def kept(row: Row) -> float | None:
        return number(row, "accuracy")

    by_ratio: list[Level] = [(BY_RATIO, level, ratio, math.log(level)) for level in RATIOS]
    by_accuracy: list[Level] = [
        (BY_ACCURACY, loss, kept, None if bare is None else bare.value - loss) for loss in LOSSES
    ]
    return by_ratio + by_accuracy


def _at(curve: Sequence[Row], place: Place, wanted: float | None) -> Row:
    """Return the shown columns of a curve at a place: between the first two neighbours, from weak on, around it."""
    ordered = sorted(curve, key=lambda row: number(row, "strength") or 0.0)
    empty: Row = {}
    for column in SHOWN:
        empty |= columns(column, None)
    if wanted is None:
        return empty
    for one, other in itertools.pairwise(ordered):
        left, right = place(one), place(other)
        if left is None or right is None or not min(left, right) <= wanted <= max(left, right):
            continue
        share = 0.0 if right == left else (wanted - left) / (right - left)
        row: Row = {}
        for column in SHOWN:
            row |= columns(column, between(reading_of(one, column), reading_of(other, column), share))
        return row
    return empty


def between(one: Reading | None, other: Reading | None, share: float) -> Reading | None:
    """Return a reading so far on the way from one to another; its interval is as wide as the wider one's, on each side.

    Example:
        >>> ends = [Reading(name="rmse", value=v, low=v - w, high=v + w) for v, w in ((0.0, 0.25), (1.0, 0.5))]
        >>> found = between(*ends, share=0.5)
        >>> found.value, found.low, found.high
        (0.5, 0.0, 1.0)
    """
    if one is None or other is None:
        return None
    value = one.value + share * (other.value - one.value)
    below = [reading.value - reading.low for reading in (one, other) if reading.low is not None]
    above_ = [reading.high - reading.value for reading in (one, other) if reading.high is not None]
    known = len(below) == len(above_) == 2
    return Reading(
        name=one.name,
        value=value,
        low=value - max(below) if known else None,
        high=value + max(above_) if known else None,
    )


EXPERIMENT = Experiment(
    table="equal",
    keys=("data_set", "stage", "at", "level", "mechanism"),
    plans=ppc.plans,
    rows=rows,
    checks=checks,
    notes=lambda studies: [NOTE],
)
