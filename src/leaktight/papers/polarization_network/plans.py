"""Plans: the audits that a study takes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from leaktight.attacks.label_reading import LabelReading
from leaktight.attacks.presets import preset
from leaktight.core.defence import Defence
from leaktight.core.probe import Attempt, Probe
from leaktight.core.scenario import Scenario
from leaktight.core.threat import Knows, ThreatModel
from leaktight.data import Dirichlet, Equal
from leaktight.learning.federated import Federated
from leaktight.learning.optimiser import Adam, DecayedSgd, Optimiser, Sgd
from leaktight.learning.protocol import FedAvg, FedSGD, RoundRobin
from leaktight.learning.standalone import Standalone
from leaktight.metrics import PSNR, LabelDistance, RelativeRMSE, SearchGap
from leaktight.metrics.perturbation import Perturbation
from leaktight.metrics.tracing import TracingDistance
from leaktight.models.dlnet import DLNet
from leaktight.papers.paper import Plans
from leaktight.papers.polarization_network.mechanisms import MODELLED, federated_spn, gaussian, laplace, ppdl, spn, swept
from leaktight.papers.polarization_network.settings import PARTICIPANTS, Federation, Study, Sweep
from leaktight.plans.plan import Grid, Plan
from leaktight.probes import Utility

METRICS = (RelativeRMSE(), LabelDistance(), TracingDistance(queries="attacked"), Perturbation(), PSNR(), SearchGap())
ATTACK, ADAPTIVE, LABELS = "fan2020", "fan2020-adaptive", "label_reading"
PARTITIONS = {"IID": Equal(), "Dirichlet 0.9": Dirichlet(alpha=0.9)}


def plans_of(study: Study, seed: int) -> Plans:
    """Return the audits of a study by name: accuracies, attacks on noise and on what can be modelled, and federations."""
    found = {f"{study.name}-accuracy": _accuracies(study, seed)}
    for number, sweep in enumerate(study.sweeps):
        sizes = "-".join(map(str, sweep.batch_sizes))
        found[f"{study.name}-attack-{sizes}"] = _attacks(study, sweep, seed, ablations=number == 0)
        found[f"{study.name}-modelled-{sizes}"] = _modelled(study, sweep, seed)
    for federation in study.federations:
        name = f"{study.name}-{federation.network.kind}"
        found[f"{name}-federated"] = _federated(study, federation, seed)
        found[f"{name}-standalone"] = _standalone(study, federation, seed)
    return found


def _accuracies(study: Study, seed: int) -> Plan:
    """Train DLNet by round robin under every mechanism (Table 2, Table 11)."""
    steps = study.local_steps or _epoch(study, PARTICIPANTS, study.batch_size)
    scenario = Federated(
        data=study.data,
        # The attack's network saw pixels as they are in the paper's public code; so does the training.
        model=DLNet(activation=study.activation),
        normalise=False,
        participants=PARTICIPANTS,
        protocol=RoundRobin(optimiser=Adam(learning_rate=study.learning_rate), local_steps=steps),
        rounds=study.rounds,
        batch_size=study.batch_size,
        device=study.device,
    )
    defences = swept(study.noise, study.alpha2).values()
    return _plan(f"{study.name}: accuracies", {"round robin": scenario}, defences, {"utility": Utility()}, seed)


def _attacks(study: Study, sweep: Sweep, seed: int, ablations: bool) -> Plan:
    """Attack one gradient of the initial network under noise (Algorithms 5 and 6), and the ablations."""
    defences = [defence for (name, _), defence in swept(sweep.noise, ()).items() if name not in MODELLED]
    if ablations:
        defences += [spn(alpha2, bits) for bits in study.bits for alpha2 in study.bits_alpha2]
        defences += [laplace(scale) for scale in study.laplace]
    return _swept(f"{study.name}: attacks", study, sweep, defences, _plain(sweep), seed)


def _modelled(study: Study, sweep: Sweep, seed: int) -> Plan:
    """Attack polarization and PPDL by who does not know of them, and by who does: one audit, so that both are compared."""
    threat = ThreatModel(knows=frozenset({Knows.LOCAL_STEPS, Knows.DEFENCE}))
    # An iteration of the plain attack is up to 20 evaluations, one of this is one.
    iterations = min(300, 20 * sweep.iterations)
    knowing = Attempt(attack=preset(ADAPTIVE, iterations=iterations), threat=threat, metrics=METRICS)
    probes = {**_plain(sweep), ADAPTIVE: knowing}
    defences = [defence for (name, _), defence in swept(sweep.noise, sweep.alpha2).items() if name in MODELLED]
    return _swept(f"{study.name}: attacks by who knows the defence", study, sweep, defences, probes, seed)


def _plain(sweep: Sweep) -> dict[str, Probe]:
    return {
        ATTACK: Attempt(attack=preset(ATTACK, iterations=sweep.iterations), metrics=METRICS),
        LABELS: Attempt(attack=LabelReading(), metrics=METRICS),
    }


def _swept(title: str, study: Study, sweep: Sweep, defences: Iterable[Defence], probes: dict[str, Probe], seed: int) -> Plan:
    scenario = Federated(
        data=study.data,
        model=DLNet(activation=study.activation),
        normalise=False,
        participants=PARTICIPANTS,
        protocol=FedSGD(),
        rounds=0,
        device=study.device,
    )
    return _plan(
        title, {"one gradient": scenario}, defences, probes, seed, batch_sizes=sweep.batch_sizes, victims=sweep.victims
    )


def _federated(study: Study, federation: Federation, seed: int) -> Plan:
    """Train by federated averaging, plain and under the mechanisms of Fig. 28."""
    defences = [federated_spn(federation.alpha2)]
    if federation.others:
        defences += [gaussian(0.1), ppdl(0.3)(0.0), ppdl(0.05)(0.0)]
    title = f"{study.name}: {federation.network.kind}, federated averaging"
    return _plan(title, dict(federations(study, federation)), defences, {"utility": Utility()}, seed)


def _standalone(study: Study, federation: Federation, seed: int) -> Plan:
    """Train participants of the same federations alone."""
    scenarios: dict[str, Scenario] = {
        name: Standalone(federation=one, sample=federation.sample) for name, one in federations(study, federation).items()
    }
    title = f"{study.name}: {federation.network.kind}, standalone"
    return _plan(title, scenarios, (), {"utility": Utility()}, seed)


def federations(study: Study, federation: Federation) -> dict[str, Federated]:
    """Return a federation for each partition and number of clients, by a name that says both."""
    return {
        f"{partition}, {clients} clients": Federated(
            data=study.data,
            model=federation.network,
            partition=dealt,
            participants=clients,
            protocol=FedAvg(
                optimiser=_sgd(federation),
                local_steps=federation.local_steps or _epoch(study, clients, federation.batch_size),
            ),
            rounds=federation.rounds,
            batch_size=federation.batch_size,
            device=study.device,
        )
        for partition, dealt in PARTITIONS.items()
        for clients in federation.clients
    }


def _sgd(federation: Federation) -> Optimiser:
    settings: dict[str, Any] = {"learning_rate": federation.learning_rate, "momentum": 0.9}
    return DecayedSgd(rounds=federation.halved, **settings) if federation.halved else Sgd(**settings)


def _epoch(study: Study, clients: int, batch_size: int) -> int:
    """Return how many steps take one participant once through what it owns, on average."""
    return max(1, len(study.data.load().train) // clients // batch_size)


def _plan(
    title: str, scenarios: dict[str, Scenario], defences: Iterable[Defence], probes: dict[str, Probe], seed: int, **grid: Any
) -> Plan:
    return Plan(
        title=title,
        scenarios=scenarios,
        defences=tuple(defences),
        probes=probes,
        grid=Grid(seeds=(seed,), **{"victims": 1, **grid}),
    )
