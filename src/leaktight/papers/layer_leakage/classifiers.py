"""Two attackers: what a network finds in each layer beside what a random forest does (Fig. 5)."""

from __future__ import annotations

from collections.abc import Sequence

from leaktight.papers.check import Check, at_least
from leaktight.papers.comparison import difference, mean_of
from leaktight.papers.layer_leakage import audits
from leaktight.papers.layer_leakage.networks import VGG11NET
from leaktight.papers.layer_leakage.scales import Study
from leaktight.papers.paper import Experiment, Plans
from leaktight.papers.records import Records
from leaktight.papers.row import Row, claims, groups, reading_of, rows_where

PUBLISHED = claims(
    ("An attack by a network has the same pattern over layers.", "6.2, Fig. 5"),
    ("The random forest outperforms the network.", "6.2, Fig. 5"),
)


def plans(study: Study) -> Plans:
    """Return the audits of both attackers."""
    return audits.plan_leaks(study) | audits.plan_other_attacks(study)


def rows(study: Study, records: Records) -> list[Row]:
    """Return a row for each layer and classifier."""
    return [
        {**place, "classifier": classifier, **audits.leak_columns(records, subject, network, layer, classifier)}
        for subject in study.subjects
        for network in study.compared
        for classifier in (audits.FOREST, audits.NETWORK)
        for place, layer in audits.places(subject, network)
    ]


def checks(rows: Sequence[Row]) -> list[Check]:
    """Compare both attackers by their mean over layers."""
    verdicts = []
    for place, own in groups(rows, "data_set", "task", "property", "network"):
        means = [
            mean_of([reading_of(row, audits.AUC) for row in rows_where(own, classifier=name)])
            for name in (audits.FOREST, audits.NETWORK)
        ]
        name = f"Property AUC({audits.FOREST}) - property AUC({audits.NETWORK}), mean over layers, {', '.join(place)}"
        verdicts.append(at_least(name, difference(*means), 0))
    return verdicts


def notes(study: Study) -> list[str]:
    """Say where fewer networks are compared than in the paper."""
    if VGG11NET in study.compared or VGG11NET not in study.networks:
        return []
    return [f"Classifiers and random entries are compared on {' and '.join(study.compared)} alone."]


EXPERIMENT = Experiment(
    table="classifiers",
    keys=(*audits.KEYS, "classifier"),
    plans=plans,
    rows=rows,
    published=PUBLISHED,
    checks=checks,
    notes=notes,
)
