"""The kind of noise: ratio and error under Laplace noise beside Gaussian noise of the same scale (Fig. 26)."""

from __future__ import annotations

from collections.abc import Sequence

from leaktight.papers.check import Check, within
from leaktight.papers.comparison import difference, farthest, relative
from leaktight.papers.paper import Experiment
from leaktight.papers.polarization_network.audits import (
    compare_strengths,
    effect,
    focus_of,
    plan_ablations,
    plan_attacks,
)
from leaktight.papers.polarization_network.mechanisms import GAUSSIAN, LAPLACE, gaussian, laplace
from leaktight.papers.polarization_network.scales import Study
from leaktight.papers.records import Records
from leaktight.papers.row import Row, claims, rows_where

PUBLISHED = claims(
    ("Laplace and Gaussian noise of the same scale have almost the same ratio and rMSE.", "5.6, Fig. 26")
)


def rows(studies: Sequence[Study], records: Records) -> list[Row]:
    """Return a row for each kind of noise and scale."""
    return [
        {"data_set": study.name, "noise": name, "strength": scale, **effect(study, records, noise(scale))}
        for study in studies
        for name, noise in ((GAUSSIAN, gaussian), (LAPLACE, laplace))
        for scale in study.laplace
    ]


def checks(rows: Sequence[Row]) -> list[Check]:
    """Compare error and ratio under both kinds of noise at each scale; the paper says that they are almost the same."""
    focus = focus_of(rows)
    ones, others = (rows_where(rows, data_set=focus, noise=noise) for noise in (LAPLACE, GAUSSIAN))
    errors = compare_strengths(ones, others, "reconstruction", difference)
    ratios = compare_strengths(ones, others, "ratio", relative)
    where = f"at the scale where they differ most, batch 1, {focus}"
    return [
        within(f"rMSE(Laplace) - rMSE(Gaussian) {where}", farthest(errors), 0.1),
        within(f"Ratio(Laplace) / ratio(Gaussian) - 1 {where}", farthest(ratios), 0.1),
    ]


EXPERIMENT = Experiment(
    table="laplace",
    keys=("data_set", "noise", "strength"),
    plans=lambda studies: plan_attacks(studies) | plan_ablations(studies),
    rows=rows,
    published=PUBLISHED,
    checks=checks,
)
