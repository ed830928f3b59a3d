"""The number of steps: which one is best without protection on training rows that were held out for that."""

from __future__ import annotations

from collections.abc import Sequence

from leaktight.data.held_out import HeldOut
from leaktight.papers.check import Check, at_most
from leaktight.papers.paper import Experiment, Plans
from leaktight.papers.records import Records
from leaktight.papers.row import Row, claims, groups, number, over_seeds, value_at
from leaktight.papers.split_label_leakage.audits import audit_name, make_scenario, seeds_of
from leaktight.papers.split_label_leakage.scales import Study
from leaktight.plans.plan import Grid, Plan
from leaktight.probes import Utility

LOST = 0.005
"""How much held-out AUC the chosen number of steps may lose to the best."""
PUBLISHED = claims(("30 epochs; the best test AUC of a training counts.", "4"))


def plans(studies: Sequence[Study]) -> Plans:
    """Train without protection on part of the training rows, and measure on the others."""
    return {_audit(study): _plan(study) for study in studies if study.candidates}


def rows(studies: Sequence[Study], records: Records) -> list[Row]:
    """Return the AUC on held-out training rows by the number of steps."""
    return [
        {
            "data_set": study.name,
            "steps": count,
            "chosen": count == study.rounds,
            **over_seeds("held_out_auc", _utilities(study, records, count)),
        }
        for study in studies
        for count in study.candidates
    ]


def checks(rows: Sequence[Row]) -> list[Check]:
    """Compare the chosen number of steps with the best."""
    verdicts = []
    for (name,), own in groups(rows, "data_set"):
        known = [value for row in own if (value := number(row, "held_out_auc")) is not None]
        chosen = value_at(own, "held_out_auc", chosen=True)
        lost = max(known) - chosen.value if known and chosen is not None else None
        verdicts.append(
            at_most(f"Held-out AUC of the best number of steps - that of the chosen one, {name}", lost, LOST)
        )
    return verdicts


def _audit(study: Study) -> str:
    return audit_name(study, "steps")


def _plan(study: Study) -> Plan:
    held = HeldOut(data=study.data)
    scenarios = {f"{count} steps": make_scenario(study, held, rounds=count, moments=1) for count in study.candidates}
    return Plan(
        title=f"{study.name}: number of steps",
        scenarios=dict(scenarios),
        probes={"utility": Utility()},
        grid=Grid(
            seeds=seeds_of(study),
            batch_sizes=tuple({scenario.batch_size for scenario in scenarios.values()}),
            victims=1,
        ),
    )


def _utilities(study: Study, records: Records, count: int) -> list[float]:
    readings = records.where(_audit(study), rounds=count).done.readings("auc", optional=True)
    return [reading.value for reading in readings.values()]


EXPERIMENT = Experiment(
    table="steps",
    keys=("data_set", "steps"),
    plans=plans,
    rows=rows,
    published=PUBLISHED,
    checks=checks,
)
