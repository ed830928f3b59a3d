"""Mixed batches, of which only a part has the property: attack and V-information of every layer. A table of our own."""

from __future__ import annotations

from collections.abc import Sequence

from leaktight.papers.check import Check, at_least
from leaktight.papers.correlation import correlation_columns, of_columns
from leaktight.papers.layer_leakage import audits
from leaktight.papers.layer_leakage.scales import Study
from leaktight.papers.paper import Experiment, Plans
from leaktight.papers.records import Records
from leaktight.papers.row import Row, groups, reading_of


def plans(study: Study) -> Plans:
    """Attack every subject once more, with mixed batches."""
    return {
        audits.audit_name(subject, audits.MIXED): audits.plan_attack(
            study, subject, study.mixed_on, study.seeds, study.mixed
        )
        for subject in study.subjects
    }


def rows(study: Study, records: Records) -> list[Row]:
    """Return a row for each layer, with the correlation over all layers of its network."""
    rows: list[Row] = []
    for network in study.mixed_on:
        measured: list[Row] = [
            {
                **place,
                "share": study.mixed,
                **audits.leak_columns(records, subject, network, layer, part=audits.MIXED),
                **audits.leak_leads(records, subject, network, layer, audits.MIXED),
            }
            for subject in study.subjects
            for place, layer in audits.places(subject, network)
        ]
        correlation = correlation_columns(of_columns(measured, audits.V_INFORMATION, audits.AUC))
        rows += [{**row, **{name: correlation[name] for name in ("r", "r_low", "r_high", "p")}} for row in measured]
    return rows


def checks(rows: Sequence[Row]) -> list[Check]:
    """Ask of mixed batches what the paper says of pure ones."""
    correlations = [
        at_least(f"R(V-information, property AUC) of mixed batches, {network}", reading_of(own[0], "r"), audits.STRONG)
        for (network,), own in groups(rows, "network")
    ]
    words = "V-information of mixed batches"
    return correlations + audits.check_places(
        rows, audits.V_INFORMATION, words, "data_set", "task", "property", "network"
    )


def notes(study: Study) -> list[str]:
    """Say which part of a batch has the property."""
    return [
        f"In the table `mixed`, which is ours, a share of {study.mixed:g} of a batch with the property has it, and "
        "none of the others; everywhere else all of it has, as it seems to be in the paper."
    ]


EXPERIMENT = Experiment(table="mixed", keys=audits.KEYS, plans=plans, rows=rows, checks=checks, notes=notes)
