"""Audits that several tables share: accuracies of DLNet, and attacks on one gradient of it; and what they measured."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from leaktight.attacks.label_reading import LabelReading
from leaktight.attacks.presets import preset
from leaktight.core.defence import Defence, Undefended
from leaktight.core.metric import Reading
from leaktight.core.probe import Attempt, Probe
from leaktight.core.scenario import Scenario
from leaktight.core.threat import Knows, ThreatModel
from leaktight.findings.rows import RATIO
from leaktight.learning.federated import Federated
from leaktight.learning.optimiser import Adam
from leaktight.learning.protocol import FedSGD, RoundRobin
from leaktight.metrics import PSNR, LabelDistance, RelativeRMSE, SearchGap
from leaktight.metrics.perturbation import Perturbation
from leaktight.metrics.tracing import TracingDistance
from leaktight.models.dlnet import DLNet
from leaktight.papers.paper import Plans
from leaktight.papers.polarization_network.mechanisms import MODELLED, laplace, spn, sweep_mechanisms
from leaktight.papers.polarization_network.scales import PARTICIPANTS, Study, Sweep
from leaktight.papers.records import Records
from leaktight.papers.row import Row, columns, reading_of, value_at
from leaktight.plans.plan import Grid, Plan
from leaktight.probes import Utility

METRICS = (RelativeRMSE(), LabelDistance(), TracingDistance(queries="attacked"), Perturbation(), PSNR(), SearchGap())
ATTACK, ADAPTIVE, LABELS = "fan2020", "fan2020-adaptive", "label_reading"
MEMBERSHIP = "membership"
DISTANCES = {"reconstruction": "rmse_relative", MEMBERSHIP: "label_distance", "tracing": "tracing_distance"}
"""What the paper's attacks are after, and the reading that says how far from it they end."""
Compare = Callable[[Reading | None, Reading | None], Reading | None]
FOCUS = "CIFAR10"
"""The data set that the claims are about, where it was measured."""


def plan_accuracies(studies: Sequence[Study]) -> Plans:
    """Train DLNet by round robin under every mechanism (Table 2, Table 11)."""
    return {_accuracy_audit(study): _accuracies(study) for study in studies}


def plan_attacks(studies: Sequence[Study]) -> Plans:
    """Attack one gradient of the initial network under every mechanism and the ablations (Algorithms 5 and 6)."""
    plans: Plans = {}
    for study in studies:
        for sweep in study.sweeps:
            plain, modelled = _attack_audits(study, sweep)
            plans |= {plain: _attacks(study, sweep), modelled: _plan_modelled(study, sweep)}
    return plans


def accuracy(study: Study, records: Records, defence: Defence) -> Reading | None:
    """Return the test accuracy under a defence; None if the training run failed or diverged."""
    return records.where(_accuracy_audit(study), defence=defence).done.reading("accuracy", optional=True)


def distance(
    study: Study, records: Records, aim: str, defence: Defence, batch_size: int, attack: str = ATTACK
) -> Reading | None:
    """Return how far from its aim an attack on a defence ends; None if it failed.

    Args:
        study: what was planned.
        records: what came of it.
        aim: `reconstruction`, `membership` or `tracing`.
        defence: the mechanism at its strength.
        batch_size: examples behind one gradient.
        attack: by its label.
    """
    return _attack_cells(study, records, defence, batch_size, attack).reading(DISTANCES[aim], "raw")


def strongest_distance(
    study: Study, records: Records, aim: str, defence: Defence, batch_size: int, knowing: bool
) -> Reading | None:
    """Return the smallest distance that an attacker gets who runs every attack there is; None if one of them failed.

    With `knowing` the attacker knows the defence and so can model it.
    """
    attacks = [ATTACK, *([ADAPTIVE] if knowing else []), *([LABELS] if aim == MEMBERSHIP else [])]
    distances = [distance(study, records, aim, defence, batch_size, attack) for attack in attacks]
    known = [reading for reading in distances if reading is not None]
    return min(known, key=lambda reading: reading.value) if len(known) == len(attacks) else None


def ratio(study: Study, records: Records, defence: Defence, batch_size: int) -> Reading | None:
    """Return how large the gradient is beside what the defence adds to it; None without a defence."""
    return _attack_cells(study, records, defence, batch_size, ATTACK).reading(
        RATIO, "raw", optional=isinstance(defence, Undefended)
    )


def effect(study: Study, records: Records, defence: Defence) -> Row:
    """Return ratio and reconstruction error of a defence at batch 1, as columns."""
    return {
        **columns("ratio", ratio(study, records, defence, batch_size=1)),
        **columns("reconstruction", distance(study, records, "reconstruction", defence, batch_size=1)),
    }


def focus_of(rows: Sequence[Row]) -> str:
    """Return the data set that the claims are about: CIFAR10, or the first."""
    names = [str(row["data_set"]) for row in rows]
    return FOCUS if FOCUS in names else names[0]


def compare_strengths(
    ones: Sequence[Row], others: Sequence[Row], column: str, compare: Compare
) -> list[Reading | None]:
    """Compare a column of two settings at each strength."""
    return [compare(reading_of(row, column), value_at(others, column, strength=row["strength"])) for row in ones]


def make_plan(
    title: str,
    scenarios: dict[str, Scenario],
    defences: Iterable[Defence],
    probes: dict[str, Probe],
    seed: int,
    **grid: Any,
) -> Plan:
    """Return an audit with one victim, or what `grid` says."""
    return Plan(
        title=title,
        scenarios=scenarios,
        defences=tuple(defences),
        probes=probes,
        grid=Grid(seeds=(seed,), **{"victims": 1, **grid}),
    )


def steps_per_epoch(study: Study, clients: int, batch_size: int) -> int:
    """Return how many steps take one participant once through what it owns, on average."""
    return max(1, len(study.data.load().train) // clients // batch_size)


def _accuracy_audit(study: Study) -> str:
    return f"{study.name}-accuracy"


def _attack_audits(study: Study, sweep: Sweep) -> tuple[str, str]:
    sizes = "-".join(map(str, sweep.batch_sizes))
    return f"{study.name}-attack-{sizes}", f"{study.name}-modelled-{sizes}"


def _attack_cells(study: Study, records: Records, defence: Defence, batch_size: int, attack: str) -> Records:
    audits = [audit for sweep in study.sweeps for audit in _attack_audits(study, sweep)]
    return records.where(*audits, label=attack, batch_size=batch_size, defence=defence).done


def _accuracies(study: Study) -> Plan:
    steps = study.local_steps or steps_per_epoch(study, PARTICIPANTS, study.batch_size)
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
    defences = sweep_mechanisms(study.noise, study.alpha2).values()
    return make_plan(
        f"{study.name}: accuracies", {"round robin": scenario}, defences, {"utility": Utility()}, study.seed
    )


def _attacks(study: Study, sweep: Sweep) -> Plan:
    """Attack under noise; the first sweep also has the lengths of the code and Laplace noise."""
    defences = [defence for (name, _), defence in sweep_mechanisms(sweep.noise, ()).items() if name not in MODELLED]
    if sweep == study.sweeps[0]:
        defences += [spn(alpha2, bits) for bits in study.bits for alpha2 in study.bits_alpha2]
        defences += [laplace(scale) for scale in study.laplace]
    return _sweep(f"{study.name}: attacks", study, sweep, defences, _plain(sweep))


def _plan_modelled(study: Study, sweep: Sweep) -> Plan:
    """Attack polarization and PPDL with and without knowledge of them: one audit, so that both are compared."""
    threat = ThreatModel(knows=frozenset({Knows.LOCAL_STEPS, Knows.DEFENCE}))
    # An iteration of the plain attack is up to 20 evaluations, one of this is one.
    iterations = min(300, 20 * sweep.iterations)
    knowing = Attempt(attack=preset(ADAPTIVE, iterations=iterations), threat=threat, metrics=METRICS)
    probes = {**_plain(sweep), ADAPTIVE: knowing}
    defences = [
        defence for (name, _), defence in sweep_mechanisms(sweep.noise, sweep.alpha2).items() if name in MODELLED
    ]
    return _sweep(f"{study.name}: attacks by who knows the defence", study, sweep, defences, probes)


def _plain(sweep: Sweep) -> dict[str, Probe]:
    return {
        ATTACK: Attempt(attack=preset(ATTACK, iterations=sweep.iterations), metrics=METRICS),
        LABELS: Attempt(attack=LabelReading(), metrics=METRICS),
    }


def _sweep(title: str, study: Study, sweep: Sweep, defences: Iterable[Defence], probes: dict[str, Probe]) -> Plan:
    scenario = Federated(
        data=study.data,
        model=DLNet(activation=study.activation),
        normalise=False,
        participants=PARTICIPANTS,
        protocol=FedSGD(),
        rounds=0,
        device=study.device,
    )
    grid = {"batch_sizes": sweep.batch_sizes, "victims": sweep.victims}
    return make_plan(title, {"one gradient": scenario}, defences, probes, study.seed, **grid)
