"""Mutual information of input and activations, as a share of the most that so many examples can have (Fig. 9)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from leaktight.papers.check import Check, above, at_most
from leaktight.papers.comparison import difference, highest
from leaktight.papers.layer_leakage.audits import INFORMATION, KEYS, MODEL, measured_columns, places, plan_models
from leaktight.papers.layer_leakage.scales import Study, Subject
from leaktight.papers.paper import Experiment
from leaktight.papers.records import Records
from leaktight.papers.row import Row, claims, groups, reading_of

RISE = 0.01
"""How much information may rise from a layer to the next."""
PUBLISHED = claims(("The information about the input decreases towards later layers.", "9.1, Fig. 9"))


def rows(study: Study, records: Records) -> list[Row]:
    """Return both bounds for each layer."""
    return [
        {
            **place,
            **_bound("upper", records, subject, network, layer),
            **_bound("lower", records, subject, network, layer),
        }
        for subject in study.subjects
        for network in study.networks
        for place, layer in places(subject, network)
    ]


def checks(rows: Sequence[Row]) -> list[Check]:
    """Ask whether information about the input falls from the first layer to the last, and never rises on the way."""
    verdicts = []
    for place, own in groups(rows, "data_set", "task", "network"):
        shares = [reading_of(row, "upper_share") for row in own]
        name = f"Mutual information as a share, upper bound, {', '.join(place)}"
        verdicts.append(above(f"{name}: first layer - last layer", difference(shares[0], shares[-1]), 0))
        rises = [difference(after, before) for before, after in pairwise(shares)]
        verdicts.append(at_most(f"{name}: largest rise from a layer to the next", highest(rises), RISE))
    return verdicts


def _bound(end: str, records: Records, subject: Subject, network: str, layer: str) -> Row:
    name = f"mutual_information_{end}_share"
    return measured_columns(f"{end}_share", records, subject, MODEL, network, INFORMATION, name, layer)


EXPERIMENT = Experiment(
    table="mutual_information",
    keys=KEYS,
    plans=plan_models,
    rows=rows,
    published=PUBLISHED,
    checks=checks,
)
