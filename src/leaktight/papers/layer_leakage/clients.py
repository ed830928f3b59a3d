"""Clients: property inference with several participants and by updates, from the server and a participant's seat.

A table of our own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from leaktight.attacks.property_inference import PropertyInference
from leaktight.core.probe import Attempt
from leaktight.core.scenario import Scenario
from leaktight.core.threat import Knows, ThreatModel
from leaktight.learning.optimiser import Sgd
from leaktight.learning.protocol import FedAvg, FedSGD, Protocol
from leaktight.learning.schedule import ByProperty
from leaktight.metrics import PropertyAuc
from leaktight.papers.check import Check, above, at_least
from leaktight.papers.layer_leakage import audits
from leaktight.papers.layer_leakage.scales import Study
from leaktight.papers.paper import Experiment, Plans
from leaktight.papers.records import Records
from leaktight.papers.row import Row, columns, over_runs, paired_columns, reading_of
from leaktight.plans.plan import Grid, Plan

CLIENTS, GAIN = "clients", "gain"
SERVER, PARTICIPANT = "server", "client-1"
PASSIVE, ACTIVE = "passive", "active"
_WEIGHTS = {SERVER: {PASSIVE: 0.0}, PARTICIPANT: {PASSIVE: 0.0, ACTIVE: 1.0}}
NOTE = (
    "The table `clients` is ours. An active participant adds the gradient of a second task to what it shares, which "
    "teaches the common features to tell who has the property. A participant sees the mean of all others' messages, of "
    "which one or more may have the property; the server sees each by itself. In the runs that a participant attacks, "
    "batches with the property are rarer the more participants there are, so that there are means without it. `gain` "
    "is what it adds to be active, seed by seed."
)


def plans(study: Study) -> Plans:
    """Attack the first subject with every protocol, number of participants and seat."""
    subject = study.subjects[0]
    return {
        f"{audits.audit_name(subject, CLIENTS)}-{seat}": Plan(
            title=f"{subject.data_set}, {subject.task}, {subject.private}: several participants, from {seat}",
            scenarios=dict(_scenarios(study, seat)),
            probes={name: _attempt(study, seat, weight) for name, weight in _WEIGHTS[seat].items()},
            grid=Grid(
                seeds=audits.seeds_of(study, study.few),
                stages=("training",),
                batch_sizes=(study.batch_size,),
                # A participant sees one mean in each round, however many there are.
                victims=study.messages * max(study.participants) // 2,
            ),
        )
        for seat in (SERVER, PARTICIPANT)
    }


def rows(study: Study, records: Records) -> list[Row]:
    """Return a row for each seat, protocol and number of participants."""
    subject = study.subjects[0]
    rows: list[Row] = []
    for seat, name in ((seat, name) for seat, weights in _WEIGHTS.items() for name in weights):
        for protocol, count in _settings(study):
            audit = f"{audits.audit_name(subject, CLIENTS)}-{seat}"
            setting = {"protocol": protocol, "participants": count}
            own, passive = (
                records.where(audit, label=label, **setting).done.readings(audits.AUC) for label in (name, PASSIVE)
            )
            rows.append(
                {
                    "data_set": subject.data_set,
                    "task": subject.task,
                    "property": subject.private,
                    "network": study.guarding.network,
                    "seat": "server" if seat == SERVER else "participant",
                    "attack": name,
                    "protocol": protocol.kind,
                    "participants": count,
                    **over_runs(audits.AUC, own.values()),
                    **(columns(GAIN, None) if name == PASSIVE else paired_columns(GAIN, own, passive)),
                }
            )
    return rows


def checks(rows: Sequence[Row]) -> list[Check]:
    """Ask whether the property is told with more participants and from updates, and whether to be active helps."""
    checks = []
    for row in rows:
        setting = f"{row['protocol']} with {row['participants']} participants"
        if row["attack"] == PASSIVE:
            auc = reading_of(row, audits.AUC)
            checks.append(above(f"Property AUC, {setting}, seen by the {row['seat']}", auc, 0.5))
        else:
            words = f"Property AUC({ACTIVE}) - property AUC({PASSIVE}), {setting}"
            checks.append(at_least(words, reading_of(row, GAIN), 0))
    return checks


def _attempt(study: Study, seat: str, weight: float) -> Attempt:
    return Attempt(
        attack=PropertyInference(layers="each", gradients=study.gradients, active_weight=weight),
        threat=ThreatModel(seat=seat, knows=frozenset({Knows.AUXILIARY, Knows.LOCAL_STEPS})),
        metrics=(PropertyAuc(),),
    )


def _settings(study: Study) -> Iterator[tuple[Protocol, int]]:
    steps = Sgd(learning_rate=study.learning_rate)
    for protocol in (FedSGD(optimiser=steps), FedAvg(optimiser=steps, local_steps=study.local_steps)):
        for count in study.participants:
            yield protocol, count


def _scenarios(study: Study, seat: str) -> Iterator[tuple[str, Scenario]]:
    subject, network = study.subjects[0], study.guarding.network
    for protocol, count in _settings(study):
        # So that a mean of all others has the property about half of the time.
        schedule = ByProperty(every=2 if seat == SERVER else max(2, 2 * (count - 1)))
        settings = {"protocol": protocol, "participants": count, "schedule": schedule}
        yield f"{protocol.kind} {count}", audits.federation(study, subject, network, **settings)


EXPERIMENT = Experiment(
    table="clients",
    keys=("data_set", "task", "property", "network", "seat", "attack", "protocol", "participants"),
    plans=plans,
    rows=rows,
    checks=checks,
    notes=lambda study: [NOTE],
)
