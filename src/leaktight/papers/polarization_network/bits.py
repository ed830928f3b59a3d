"""The length of the secret code: ratio and error of polarization by it (Fig. 27)."""

from __future__ import annotations

from collections.abc import Sequence

from leaktight.papers.check import Check, above
from leaktight.papers.comparison import difference, farthest, relative
from leaktight.papers.paper import Experiment
from leaktight.papers.polarization_network.audits import (
    compare_strengths,
    effect,
    focus_of,
    plan_ablations,
    plan_attacks,
)
from leaktight.papers.polarization_network.mechanisms import BITS, spn
from leaktight.papers.polarization_network.scales import Study
from leaktight.papers.records import Records
from leaktight.papers.row import Row, claims, number, rows_where

PUBLISHED = claims(("From 32 to 128 bits ratio and protection (rMSE) increase.", "5.7, Fig. 27"))


def rows(studies: Sequence[Study], records: Records) -> list[Row]:
    """Return a row for each length and strength."""
    return [
        {"data_set": study.name, "bits": bits, "strength": alpha2, **effect(study, records, spn(alpha2, bits))}
        for study in studies
        for bits in sorted({BITS, *study.bits})
        for alpha2 in study.bits_alpha2
    ]


def checks(rows: Sequence[Row]) -> list[Check]:
    """Compare error and ratio of the longest and the shortest code, at the strength at which they differ most."""
    focus = focus_of(rows)
    own = rows_where(rows, data_set=focus)
    lengths = sorted({int(value) for row in own if (value := number(row, "bits")) is not None})
    long, short = (rows_where(own, bits=bits) for bits in (lengths[-1], lengths[0]))
    errors = compare_strengths(long, short, "reconstruction", difference)
    ratios = compare_strengths(long, short, "ratio", relative)
    where = f"at the strength where they differ most, batch 1, {focus}"
    return [
        above(f"rMSE({lengths[-1]} bits) - rMSE({lengths[0]} bits) {where}", farthest(errors), 0),
        above(f"Ratio({lengths[-1]} bits) / ratio({lengths[0]} bits) - 1 {where}", farthest(ratios), 0),
    ]


EXPERIMENT = Experiment(
    table="bits",
    keys=("data_set", "bits", "strength"),
    plans=lambda studies: plan_attacks(studies) | plan_ablations(studies),
    rows=rows,
    published=PUBLISHED,
    checks=checks,
)
