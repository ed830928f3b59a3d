"""Gradients of both classes: norms, cosines, and the norm's two factors, at four moments of training (Fig. 1)."""

from __future__ import annotations

import math
from collections.abc import Sequence

from leaktight.core.metric import Reading
from leaktight.papers.check import Check, above, within
from leaktight.papers.comparison import difference, farthest, lowest, relative
from leaktight.papers.paper import Experiment
from leaktight.papers.records import Records
from leaktight.papers.row import Row, claims, groups, over_seeds, reading_of, rows_where
from leaktight.papers.split_label_leakage.audits import CLASSES, LOOKS, at_look, plan_distributions
from leaktight.papers.split_label_leakage.mechanisms import NONE, PROTECTED
from leaktight.papers.split_label_leakage.scales import Study
from leaktight.probes.class_gradients import CLASSES as LABELS
from leaktight.probes.class_gradients import MEASURES

PUBLISHED = claims(
    ("The error is generally larger for positives than for negatives.", "2.2, Fig. 1a"),
    ("The slope is of the same order for both.", "2.2, Fig. 1b"),
    ("The norm of the gradient is generally larger for positives than for negatives.", "2.2, Fig. 1c"),
)


def rows(studies: Sequence[Study], records: Records) -> list[Row]:
    """Return quantiles over the examples of each class at those moments."""
    return [
        {
            "data_set": study.name,
            "defence": name,
            "moment": look,
            "label": label,
            **_quantiles(study, records, name, look, label),
        }
        for study in studies
        for name in (NONE, PROTECTED)
        for look in range(1, LOOKS + 1)
        for label in LABELS
    ]


def checks(rows: Sequence[Row]) -> list[Check]:
    """Compare the medians of both classes at each moment without protection: the error differs, the slope does not."""
    return [
        check for (name,), own in groups(rows, "data_set") for check in _checks(rows_where(own, defence=NONE), name)
    ]


def _quantiles(study: Study, records: Records, defence: str, look: int, label: str) -> Row:
    row: Row = {}
    for measure in MEASURES:
        for share in (5, 50, 95):
            values = at_look(study, records, defence, CLASSES, f"{measure}_{label}_q{share}", look)
            row |= over_seeds(f"{measure}_q{share}", values)
    return row


def _checks(rows: Sequence[Row], name: str) -> list[Check]:
    gaps, orders = [], []
    for moment in dict.fromkeys(row["moment"] for row in rows):
        negative, positive = (next(iter(rows_where(rows, moment=moment, label=label)), {}) for label in LABELS)
        gaps.append(difference(*(reading_of(row, "error_q50") for row in (positive, negative))))
        orders.append(_order(relative(*(reading_of(row, "slope_q50") for row in (positive, negative)))))
    where = f"medians at the moment where it is {{}}, unprotected, {name}"
    return [
        above(f"Error(positives) - error(negatives), {where.format('least')}", lowest(gaps), 0),
        within(
            f"log10(slope(positives) / slope(negatives)), {where.format('farthest from 0')}",
            farthest(orders),
            1,
        ),
    ]


def _order(excess: Reading | None) -> Reading | None:
    """Return the logarithm of a ratio to the base 10, of the share by which it is above 1."""
    if excess is None:
        return None
    ends = (None if end is None else math.log10(1 + end) for end in (excess.value, excess.low, excess.high))
    value, low, high = ends
    return None if value is None else Reading(name=excess.name, value=value, low=low, high=high)


EXPERIMENT = Experiment(
    table="distributions",
    keys=("data_set", "defence", "moment", "label"),
    plans=plan_distributions,
    rows=rows,
    published=PUBLISHED,
    checks=checks,
)
