"""Matched labels: whether the property is told, or only the labels that go along with it. A table of our own."""

from __future__ import annotations

from collections.abc import Sequence

from leaktight.papers.check import Check, above
from leaktight.papers.layer_leakage import audits, layers
from leaktight.papers.layer_leakage.networks import NETWORKS
from leaktight.papers.layer_leakage.scales import Study
from leaktight.papers.paper import Experiment, Plans
from leaktight.papers.records import Records
from leaktight.papers.row import Row, groups, over_runs, reading_of, rows_where

COUNTING = "counting_auc"
NOTE = (
    "The table `matched` is ours: `counting` is an attacker who is told the labels behind each message and nothing "
    "else. Where batches are matched, those with the property and without have labels alike."
)


def plans(study: Study) -> Plans:
    """Attack every subject once more, on batches whose labels are alike."""
    matched = {
        audits.audit_name(subject, audits.MATCHED): audits.plan_matched(study, subject) for subject in study.subjects
    }
    return layers.plans(study) | matched


def rows(study: Study, records: Records) -> list[Row]:
    """Return a row for each subject, for batches as they come and for matched ones."""
    network = study.guarding.network
    rows: list[Row] = []
    for subject in study.subjects:
        for kind, part in (("as they come", audits.LEAK), ("matched", audits.MATCHED)):
            named = audits.audit_name(subject, part)
            rest = records.where(named, label=audits.REST, model=NETWORKS[network]).done
            rows.append(
                {
                    "data_set": subject.data_set,
                    "task": subject.task,
                    "property": subject.private,
                    "network": network,
                    "labels": kind,
                    **over_runs(COUNTING, rest.readings(COUNTING).values()),
                    **audits.measured_columns(
                        audits.AUC, records, subject, part, network, audits.FOREST, audits.AUC, None
                    ),
                }
            )
    return rows


def checks(rows: Sequence[Row]) -> list[Check]:
    """Ask whether gradients tell the property where labels do not."""
    return [
        above(
            f"Property AUC of whole messages with matched labels, {', '.join(place)}",
            reading_of(rows_where(own, labels="matched")[0], audits.AUC),
            0.5,
        )
        for place, own in groups(rows, "data_set", "task", "property", "network")
    ]


EXPERIMENT = Experiment(
    table="matched",
    keys=("data_set", "task", "property", "network", "labels"),
    plans=plans,
    rows=rows,
    checks=checks,
    notes=lambda study: [NOTE],
)
