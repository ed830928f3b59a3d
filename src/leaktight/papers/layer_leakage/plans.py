"""Plans: the audits that a study takes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from leaktight.attacks.presets import preset
from leaktight.attacks.property_inference import PropertyInference
from leaktight.core.probe import Attempt, Probe
from leaktight.core.scenario import Scenario
from leaktight.core.threat import Knows, ThreatModel
from leaktight.learning.federated import Federated
from leaktight.learning.optimiser import Sgd
from leaktight.learning.protocol import FedSGD
from leaktight.learning.schedule import ByProperty
from leaktight.metrics import PSNR, PropertyAuc, RelativeRMSE, SearchGap
from leaktight.papers.layer_leakage.networks import CONVOLUTIONAL, NETWORKS, layers_of
from leaktight.papers.layer_leakage.settings import Study, Subject
from leaktight.papers.paper import Plans
from leaktight.plans.plan import Grid, Plan
from leaktight.probes import MutualInformation, Sensitivity, VInformation

LEAK, MIXED, COMPARED, MODEL, INVERSION = "leak", "mixed", "compared", "model", "inversion"
FOREST, NETWORK, ENTRIES = "random forest", "network", "random entries"
V_FOREST, V_NETWORK, V_ENTRIES = "V-information", "V-information, network", "V-information, random entries"
SENSITIVITY, INFORMATION = "sensitivity", "mutual information"
PARTICIPANTS = 2


def plans_of(study: Study, seed: int) -> Plans:
    """Return the audits of a study by name: what leaks, what the trained model says of it, other properties and tasks, and inversion."""
    found = {}
    for subject in study.subjects:
        found[folder(subject, LEAK)] = _leak(study, subject, study.networks, seed, study.seeds)
        found[folder(subject, MODEL)] = _model(study, subject, study.networks, seed, study.seeds)
        found[folder(subject, MIXED)] = _leak(study, subject, study.mixed_on, seed, study.seeds, study.mixed)
        if study.compared:
            found[folder(subject, COMPARED)] = _compared(study, subject, seed)
    for subject in study.properties:
        found[folder(subject, LEAK)] = _leak(study, subject, (study.properties_on,), seed, study.few)
    for subject in study.tasks:
        found[folder(subject, MODEL)] = _model(study, subject, convolutional(study), seed, study.few)
    found[INVERSION] = _inversion(study, seed)
    return found


def folder(subject: Subject, part: str) -> str:
    """Return the name of one of its audits, which also names a folder.

    Example:
        >>> from leaktight.data import Parity
        >>> folder(Subject(data_set="digits", task="parity", private="race: Black", data=Parity()), LEAK)
        'digits-parity-race-black-leak'
    """
    words = f"{subject.data_set} {subject.task} {subject.private} {part}".lower().replace(":", "")
    return words.replace(" ", "-")


def convolutional(study: Study) -> tuple[str, ...]:
    """Return the networks of a study that have convolutions."""
    return tuple(name for name in study.networks if name in CONVOLUTIONAL)


def span(numbers: Sequence[int]) -> str:
    """Name some layers by the first and the last of them.

    Example:
        >>> span((1,)), span((1, 2, 3, 4))
        ('1', '1-4')
    """
    return f"{numbers[0]}-{numbers[-1]}" if len(numbers) > 1 else str(numbers[0])


def _leak(study: Study, subject: Subject, networks: Sequence[str], seed: int, seeds: int, share: float = 1.0) -> Plan:
    """Attack gradients that are sent throughout the training, layer by layer, and measure their V-information (Fig. 2, 3, 7)."""
    what = "attack" if share == 1 else f"attack on batches of which {share:g} has the property"
    return _during(study, subject, networks, what, {FOREST: _attack(study), V_FOREST: _information(study)}, seed, seeds, share)


def _compared(study: Study, subject: Subject, seed: int) -> Plan:
    """Attack in the same way with another classifier, and from few entries of each layer (Fig. 5, 6)."""
    probes = {
        NETWORK: _attack(study, classifier="network"),
        V_NETWORK: _information(study, classifier="network"),
        ENTRIES: _attack(study, entries=study.entries),
        V_ENTRIES: _information(study, entries=study.entries),
    }
    return _during(study, subject, study.compared, "other attacks", probes, seed, study.seeds)


def _model(study: Study, subject: Subject, networks: Sequence[str], seed: int, seeds: int) -> Plan:
    """Measure sensitivity and mutual information of the model at the end of the training (Fig. 2, 4, 8, 9)."""
    return Plan(
        title=f"{subject.data_set}, {subject.task}: the trained model",
        scenarios=_scenarios(study, subject, networks),
        probes={
            SENSITIVITY: Sensitivity(samples=study.samples),
            INFORMATION: MutualInformation(samples=study.examples),
        },
        grid=Grid(seeds=_seeds(seed, seeds), stages=("end",), batch_sizes=(study.batch_size,), victims=1),
    )


def _inversion(study: Study, seed: int) -> Plan:
    """Reconstruct images from gradients of the initial network, of which some layers are matched (Fig. 10)."""
    asked = study.inversion
    layers = layers_of(asked.network)
    probes: dict[str, Probe] = {
        f"layers {span(numbers)}": Attempt(
            attack=preset("idlg2020", layers=[layers[number] for number in numbers], iterations=asked.iterations),
            metrics=(RelativeRMSE(), PSNR(), SearchGap()),
        )
        for numbers in asked.sets
    }
    scenario = Federated(
        data=asked.data,
        model=asked.network,
        # The attack's own code shows networks pixels as they are.
        normalise=False,
        participants=PARTICIPANTS,
        protocol=FedSGD(),
        rounds=0,
        device=study.device,
    )
    return Plan(
        title=f"{asked.data_set}: inversion by layers",
        scenarios={"one gradient": scenario},
        probes=probes,
        grid=Grid(seeds=(seed,), victims=asked.victims),
    )


def _during(
    study: Study,
    subject: Subject,
    networks: Sequence[str],
    what: str,
    probes: dict[str, Probe],
    seed: int,
    seeds: int,
    share: float = 1.0,
) -> Plan:
    return Plan(
        title=f"{subject.data_set}, {subject.task}, {subject.private}: {what}",
        scenarios=_scenarios(study, subject, networks, share),
        probes=probes,
        grid=Grid(seeds=_seeds(seed, seeds), stages=("training",), batch_sizes=(study.batch_size,), victims=study.messages),
    )


def _attack(
    study: Study, classifier: Literal["random_forest", "network"] = "random_forest", entries: int | None = None
) -> Attempt:
    attack = PropertyInference(classifier=classifier, layers="each", gradients=study.gradients, entries=entries)
    return Attempt(attack=attack, threat=_threat(study), metrics=(PropertyAuc(),))


def _information(
    study: Study, classifier: Literal["random_forest", "network"] = "random_forest", entries: int | None = None
) -> VInformation:
    return VInformation(
        families=(classifier,), repeats=study.repeats, gradients=study.gradients, entries=entries, threat=_threat(study)
    )


def _threat(study: Study) -> ThreatModel:
    """Return who attacks: of two participants one can tell the other's gradient if it knows how the server steps."""
    return ThreatModel(seat=study.seat, knows=frozenset({Knows.AUXILIARY, Knows.LOCAL_STEPS}))


def _scenarios(study: Study, subject: Subject, networks: Sequence[str], share: float = 1.0) -> dict[str, Scenario]:
    return {
        name: Federated(
            data=subject.data,
            model=NETWORKS[name],
            participants=PARTICIPANTS,
            protocol=FedSGD(optimiser=Sgd(learning_rate=study.learning_rate)),
            rounds=study.rounds,
            batch_size=study.batch_size,
            schedule=ByProperty(every=2, share=share),
            moments=study.moments,
            device=study.device,
        )
        for name in networks
    }


def _seeds(seed: int, count: int) -> tuple[int, ...]:
    return tuple(range(seed, seed + count))
