"""Audits that several tables share: attacks throughout training, and measures of the trained model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean
from typing import Any, Literal

from leaktight.attacks.property_inference import PropertyInference
from leaktight.core.probe import Attempt, Probe
from leaktight.core.scenario import Scenario
from leaktight.core.threat import Knows, ThreatModel
from leaktight.learning.federated import Federated
from leaktight.learning.optimiser import Sgd
from leaktight.learning.protocol import FedSGD
from leaktight.learning.schedule import ByProperty
from leaktight.metrics import PropertyAuc
from leaktight.papers.check import Check, above
from leaktight.papers.layer_leakage.networks import CONVOLUTIONAL, NETWORKS, first_linear, layers_of, short_name
from leaktight.papers.layer_leakage.scales import Study, Subject
from leaktight.papers.paper import Plans
from leaktight.papers.records import Records
from leaktight.papers.row import Row, columns, groups, over_runs, paired_columns, value_at
from leaktight.plans.plan import Grid, Plan
from leaktight.probes import MutualInformation, RemainingLeak, Sensitivity, VInformation

LEAK, MIXED, COMPARED, MODEL = "leak", "mixed", "compared", "model"
MATCHED, GUARDED = "matched", "guarded"
REST = "remaining leak"
FOREST, NETWORK, ENTRIES = "random forest", "network", "random entries"
V_FOREST, V_NETWORK, V_ENTRIES = "V-information", "V-information, network", "V-information, random entries"
SENSITIVITY, INFORMATION = "sensitivity", "mutual information"
PARTICIPANTS = 2
_FLOAT = 4
AUC, V_INFORMATION, JACOBIAN = "property_auc", "v_information", "sensitivity"
NORMS = {"F": "sensitivity_f", "1": "sensitivity_1", "infinity": "sensitivity_inf"}
LEAD = "_lead"
"""How the columns end that say how far the layers near the first fully connected one are ahead of all others."""
KEYS = ("data_set", "task", "property", "network", "layer")
"""The columns that name a layer."""
STRONG, MODERATE = 0.9, 0.5
"""A correlation that is very strong, and one that is at least moderate."""
_ATTACKS = {
    FOREST: (LEAK, V_FOREST, "random_forest"),
    NETWORK: (COMPARED, V_NETWORK, "network"),
    ENTRIES: (COMPARED, V_ENTRIES, "random_forest"),
}
Classifier = Literal["random_forest", "network"]


def audit_name(subject: Subject, part: str) -> str:
    """Return the name of one of its audits, which also names a folder.

    Example:
        >>> from leaktight.data import Parity
        >>> audit_name(Subject(data_set="digits", task="parity", private="race: Black", data=Parity()), LEAK)
        'digits-parity-race-black-leak'
    """
    words = f"{subject.data_set} {subject.task} {subject.private} {part}".lower().replace(":", "")
    return words.replace(" ", "-")


def plan_leaks(study: Study) -> Plans:
    """Attack gradients throughout training, layer by layer, and measure their V-information (Fig. 2, 3)."""
    return {
        audit_name(subject, LEAK): plan_attack(study, subject, study.networks, study.seeds)
        for subject in study.subjects
    }


def plan_models(study: Study) -> Plans:
    """Measure sensitivity and mutual information of the model at the end of the training run (Fig. 2, 4, 9)."""
    return {
        audit_name(subject, MODEL): plan_model(study, subject, study.networks, study.seeds)
        for subject in study.subjects
    }


def plan_other_attacks(study: Study) -> Plans:
    """Attack in the same way with another classifier, and from few entries of each layer (Fig. 5, 6)."""
    probes: dict[str, Probe] = {
        NETWORK: _attack(study, classifier="network"),
        V_NETWORK: _information(study, classifier="network"),
        ENTRIES: _attack(study, entries=study.entries),
        V_ENTRIES: _information(study, entries=study.entries),
    }
    return {
        audit_name(subject, COMPARED): _during(study, subject, study.compared, "other attacks", probes, study.seeds)
        for subject in study.subjects
        if study.compared
    }


def plan_attack(study: Study, subject: Subject, networks: Sequence[str], seeds: int, share: float = 1.0) -> Plan:
    """Return an audit of attacks by random forests; with a share below 1, only so much of a batch has the property."""
    what = "attack" if share == 1 else f"attack on batches of which {share:g} has the property"
    probes: dict[str, Probe] = {FOREST: _attack(study), V_FOREST: _information(study)}
    if share == 1:
        probes[REST] = RemainingLeak(gradients=study.gradients, threat=_threat(study))
    return _during(study, subject, networks, what, probes, seeds, schedule=ByProperty(every=2, share=share))


def plan_matched(study: Study, subject: Subject) -> Plan:
    """Return the same audit on batches whose labels are alike with the property and without, on one network."""
    probes: dict[str, Probe] = {
        FOREST: _attempt(study, PropertyInference(layers="each", gradients=study.gradients, matched=True)),
        REST: RemainingLeak(gradients=study.gradients, matched=True, threat=_threat(study)),
    }
    networks, what = (study.guarding.network,), "attack on batches with matched labels"
    return _during(study, subject, networks, what, probes, study.seeds, schedule=ByProperty(every=2, matched=True))


def plan_model(study: Study, subject: Subject, networks: Sequence[str], seeds: int) -> Plan:
    """Return an audit of the trained model."""
    return Plan(
        title=f"{subject.data_set}, {subject.task}: the trained model",
        scenarios=_scenarios(study, subject, networks),
        probes={
            SENSITIVITY: Sensitivity(samples=study.samples),
            INFORMATION: MutualInformation(samples=study.examples),
        },
        grid=Grid(seeds=seeds_of(study, seeds), stages=("end",), batch_sizes=(study.batch_size,), victims=1),
    )


def places(subject: Subject, network: str) -> Iterator[tuple[Row, str]]:
    """Give the columns that name each layer of a network, and what messages call it."""
    for place, layer in layers_of(NETWORKS[network]).items():
        row: Row = {
            "data_set": subject.data_set,
            "task": subject.task,
            "property": subject.private,
            "network": network,
            "layer": place,
            "name": short_name(layer),
        }
        yield row, layer


def leak_columns(
    records: Records, subject: Subject, network: str, layer: str, classifier: str = FOREST, part: str | None = None
) -> Row:
    """Return what an attack finds in a layer, and how much information it has for attackers of its kind.

    Args:
        records: what was measured.
        subject: what was learned and what was private.
        network: by name.
        layer: as messages name it.
        classifier: whose attack.
        part: which of the subject's audits; None for the one that the classifier belongs to.
    """
    usual, probe, family = _ATTACKS[classifier]
    audit, name = part or usual, f"{V_INFORMATION}_{family}"
    return {
        **measured_columns(AUC, records, subject, audit, network, classifier, AUC, layer),
        **measured_columns(V_INFORMATION, records, subject, audit, network, probe, name, layer),
        **measured_columns(f"{V_INFORMATION}_share", records, subject, audit, network, probe, f"{name}_share", layer),
    }


def leak_leads(records: Records, subject: Subject, network: str, layer: str, part: str = LEAK) -> Row:
    """Return how far layers near the first fully connected one are ahead, by the attack and by V-information."""
    wanted = {AUC: (FOREST, AUC), V_INFORMATION: (V_FOREST, f"{V_INFORMATION}_random_forest")}
    row: Row = {}
    for column, (probe, name) in wanted.items():
        row |= lead_columns(column, records, subject, part, network, probe, name, layer)
    return row


def sensitivity_columns(records: Records, subject: Subject, network: str, layer: str, name: str = NORMS["F"]) -> Row:
    """Return the sensitivity of a layer by a norm."""
    return measured_columns(JACOBIAN, records, subject, MODEL, network, SENSITIVITY, name, layer)


def measured_columns(
    column: str, records: Records, subject: Subject, part: str, network: str, probe: str, name: str, layer: str | None
) -> Row:
    """Return a probe's reading over training runs as columns; a cell that failed is left out.

    Args:
        column: the name of the columns.
        records: what was measured.
        subject: what was learned and what was private.
        part: which of its audits.
        network: on which network, by name.
        probe: by its label in the plan.
        name: the reading's.
        layer: as messages name it; None for a reading without one.
    """
    runs = records.where(audit_name(subject, part), label=probe, model=NETWORKS[network]).done
    return over_runs(column, runs.readings(name, layer=layer).values())


def lead_columns(
    column: str, records: Records, subject: Subject, part: str, network: str, probe: str, name: str, layer: str
) -> Row:
    """Return how far the best layer near the first fully connected one is ahead of the best other one, as columns.

    It stands at that first layer of networks with convolutions, and nowhere else. Which two are compared follows from
    their means over training runs. They are compared run by run; of one run alone, as if they were independent.

    Args:
        column: the name of the columns, but for their end.
        records: what was measured.
        subject: what was learned and what was private.
        part: which of its audits.
        network: on which network, by name.
        probe: by its label in the plan.
        name: the reading's.
        layer: of the row, as messages name it.
    """
    layers = layers_of(NETWORKS[network])
    if network not in CONVOLUTIONAL or layer != layers[first_linear(network)]:
        return columns(f"{column}{LEAD}", None)
    runs = records.where(audit_name(subject, part), label=probe, model=NETWORKS[network]).done
    each = {number: runs.readings(name, layer=one) for number, one in layers.items()}
    if not all(each.values()):
        return columns(f"{column}{LEAD}", None)
    near, far = (
        max(
            (readings for number, readings in each.items() if _is_near(number, network) is close),
            key=lambda readings: fmean(reading.value for reading in readings.values()),
        )
        for close in (True, False)
    )
    return paired_columns(f"{column}{LEAD}", near, far)


def layer_sizes(records: Records, subject: Subject, network: str) -> dict[str, int]:
    """Return how many parameters each layer has, as the measured runs say it."""
    runs = records.where(audit_name(subject, LEAK), label=REST, model=NETWORKS[network]).done
    first = next(iter(runs), None)
    found = [] if first is None else [reading for reading in first.readings if reading.name == "sealed_bytes"]
    ordered = sorted(found, key=lambda reading: reading.value)
    below = [0.0, *(reading.value for reading in ordered)]
    return {str(one.layer): round((one.value - less) / _FLOAT) for one, less in zip(ordered, below, strict=False)}


def accuracy_columns(records: Records, subject: Subject, part: str, network: str, probe: str) -> Row:
    """Return the test accuracy of the task; a training run that diverged has none."""
    runs = records.where(audit_name(subject, part), label=probe, model=NETWORKS[network]).done
    return over_runs("accuracy", runs.readings("accuracy", optional=True).values())


def check_places(rows: Sequence[Row], column: str, words: str, *keys: str) -> list[Check]:
    """Compare the best layer near the first fully connected one with the best other, where there are convolutions."""
    checks = []
    for place, own in groups(rows, *keys):
        if place[-1] not in CONVOLUTIONAL:
            continue
        name = f"{words}(best layer at or next to the first linear one) - {words}(best other layer), {', '.join(place)}"
        checks.append(above(name, value_at(own, f"{column}{LEAD}", layer=first_linear(place[-1])), 0))
    return checks


def _is_near(number: int, network: str) -> bool:
    """Return whether a layer is the first fully connected one, or next to it."""
    return abs(number - first_linear(network)) <= 1


def _during(
    study: Study,
    subject: Subject,
    networks: Sequence[str],
    what: str,
    probes: dict[str, Probe],
    seeds: int,
    schedule: ByProperty | None = None,
) -> Plan:
    grid = Grid(
        seeds=seeds_of(study, seeds), stages=("training",), batch_sizes=(study.batch_size,), victims=study.messages
    )
    return Plan(
        title=f"{subject.data_set}, {subject.task}, {subject.private}: {what}",
        scenarios=_scenarios(study, subject, networks, schedule),
        probes=probes,
        grid=grid,
    )


def _attack(study: Study, classifier: Classifier = "random_forest", entries: int | None = None) -> Attempt:
    return _attempt(
        study,
        PropertyInference(classifier=classifier, layers="each", gradients=study.gradients, entries=entries),
    )


def _attempt(study: Study, attack: PropertyInference) -> Attempt:
    return Attempt(attack=attack, threat=_threat(study), metrics=(PropertyAuc(),))


def _information(study: Study, classifier: Classifier = "random_forest", entries: int | None = None) -> VInformation:
    return VInformation(
        families=(classifier,), repeats=study.repeats, gradients=study.gradients, entries=entries, threat=_threat(study)
    )


def _threat(study: Study) -> ThreatModel:
    """Return who attacks: one of two participants can compute the other's gradient if it knows the server's step."""
    return ThreatModel(seat=study.seat, knows=frozenset({Knows.AUXILIARY, Knows.LOCAL_STEPS}))


def _scenarios(
    study: Study, subject: Subject, networks: Sequence[str], schedule: ByProperty | None = None
) -> dict[str, Scenario]:
    return {name: federation(study, subject, name, schedule=schedule or ByProperty(every=2)) for name in networks}


def federation(study: Study, subject: Subject, network: str, **settings: Any) -> Federated:
    """Return the training run of a subject on a network; settings take the place of the study's."""
    chosen: dict[str, Any] = {
        "participants": PARTICIPANTS,
        "protocol": FedSGD(optimiser=Sgd(learning_rate=study.learning_rate)),
        "rounds": study.rounds,
        "schedule": ByProperty(every=2),
        "moments": study.moments,
        **settings,
    }
    return Federated(
        data=subject.data,
        model=NETWORKS[network],
        batch_size=study.batch_size,
        device=study.device,
        **chosen,
    )


def seeds_of(study: Study, count: int) -> tuple[int, ...]:
    """Return so many seeds, from the study's on."""
    return tuple(range(study.seed, study.seed + count))
