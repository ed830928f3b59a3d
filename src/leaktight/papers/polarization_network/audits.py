"""Audits that several tables share: accuracies of DLNet, and attacks on one gradient of it; and what they measured."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from leaktight.attacks.label_reading import LabelReading
from leaktight.attacks.presets import preset
from leaktight.attacks.strongest import Strongest
from leaktight.attacks.suite import scale, whole_suite
from leaktight.core.defence import Defence, Undefended
from leaktight.core.metric import Reading
from leaktight.core.probe import Attempt, Probe
from leaktight.core.scenario import Scenario
from leaktight.core.threat import Knows, ThreatModel
from leaktight.learning.federated import Federated
from leaktight.learning.optimiser import Adam
from leaktight.learning.protocol import FedSGD, RoundRobin
from leaktight.metrics import PSNR, LabelDistance, RelativeRMSE, SearchGap
from leaktight.metrics.image import UNCLIPPED
from leaktight.metrics.perturbation import BIAS_RATIO, BODY_RATIO, RATIO, Perturbation
from leaktight.metrics.tracing import TracingDistance
from leaktight.models.dlnet import DLNet
from leaktight.papers.paper import Plans
from leaktight.papers.polarization_network.mechanisms import hardened, laplace, spn, sweep_mechanisms
from leaktight.papers.polarization_network.scales import PARTICIPANTS, Study, Sweep
from leaktight.papers.records import Records
from leaktight.papers.row import Row, columns, reading_of, value_at
from leaktight.plans.plan import Grid, Plan
from leaktight.probes import HeadFeatures, Utility
from leaktight.statistics.pooling import pool

METRICS = (
    RelativeRMSE(),
    RelativeRMSE(clip=False),
    LabelDistance(),
    TracingDistance(queries="attacked"),
    Perturbation(),
    PSNR(),
    SearchGap(),
)
ATTACK, STRONGEST, LABELS, FEATURES = "fan2020", "strongest", "label_reading", "head_features"
INITIAL, TRAINED = "initial", "trained"
"""The stages of the attacked network: as the paper attacks it, and as whoever trains it sends."""
LABELS_READ = LabelReading()
MEMBERSHIP = "membership"
DISTANCES = {"reconstruction": "rmse_relative", MEMBERSHIP: "label_distance", "tracing": "tracing_distance"}
"""What the paper's attacks are after, and the reading that says how far from it they end."""
Compare = Callable[[Reading | None, Reading | None], Reading | None]
PUBLISHED_ITERATIONS = 300
"""L-BFGS iterations of the public code of the attack."""
FOCUS = "CIFAR10"
"""The data set that the claims are about, where it was measured."""


def plan_trained(studies: Sequence[Study]) -> Plans:
    """Train DLNet by round robin under every mechanism (Table 2, Table 11), and attack a gradient of what comes of it.

    Accuracy and leak of these cells are those of the same network.
    """
    return {_trained_audit(study): _plan_trained(study) for study in studies}


def plan_attacks(studies: Sequence[Study]) -> Plans:
    """Attack one gradient of the initial network under every mechanism (Algorithms 5 and 6).

    Label reading, on which claims about batches rest, has all seeds also where the other attacks have fewer.
    """
    attacks = {_attack_audit(study, sweep): _attacks(study, sweep) for study in studies for sweep in study.sweeps}
    labels = {
        _labels_audit(study, sweep): _read_labels(study, sweep)
        for study in studies
        for sweep in study.sweeps
        if has_fewer_seeds(study, sweep)
    }
    return attacks | labels


def plan_ablations(studies: Sequence[Study]) -> Plans:
    """Attack one gradient under other lengths of the code and Laplace noise (appendix E), by its attack alone."""
    return {_ablation_audit(study): _ablations(study) for study in studies}


def accuracy(study: Study, records: Records, defence: Defence) -> Reading | None:
    """Return the test accuracy under a defence; None if the training run failed or diverged."""
    cells = records.where(_trained_audit(study), label="utility", defence=defence)
    return mean_over_seeds(cells, "accuracy", optional=True)


def distance(
    study: Study,
    records: Records,
    aim: str,
    defence: Defence,
    batch_size: int,
    attack: str = ATTACK,
    stage: str = INITIAL,
) -> Reading | None:
    """Return how far from its aim an attack on a defence ends; None if it failed.

    Args:
        study: what was planned.
        records: what came of it.
        aim: `reconstruction`, `membership` or `tracing`.
        defence: the mechanism at its strength.
        batch_size: examples behind one gradient.
        attack: by its label.
        stage: of the attacked network.
    """
    return mean_over_seeds(_attack_cells(study, records, defence, batch_size, attack, stage), DISTANCES[aim], "raw")


def strongest_distance(
    study: Study, records: Records, aim: str, defence: Defence, batch_size: int, stage: str = INITIAL
) -> Reading | None:
    """Return the smallest distance of any attack: the paper's, the suite `strongest`, and for labels, label reading.

    None if one of them failed.
    """
    attacks = [ATTACK, STRONGEST, *([LABELS] if aim == MEMBERSHIP else [])]
    distances = [distance(study, records, aim, defence, batch_size, attack, stage) for attack in attacks]
    known = [reading for reading in distances if reading is not None]
    return min(known, key=lambda reading: reading.value) if len(known) == len(attacks) else None


def unclipped(study: Study, records: Records, defence: Defence, batch_size: int, stage: str = INITIAL) -> Row:
    """Return the paper's reconstruction error as the search left it, not cut to the range of pixels, as columns."""
    cells = _attack_cells(study, records, defence, batch_size, ATTACK, stage)
    return columns("unclipped", mean_over_seeds(cells, UNCLIPPED, "raw", optional=True))


def ratio(study: Study, records: Records, defence: Defence, batch_size: int, stage: str = INITIAL) -> Reading | None:
    """Return how large the gradient of the biases is beside what the defence adds to it; None without a defence."""
    return _ratio(study, records, defence, batch_size, stage, BIAS_RATIO)


def other_ratios(study: Study, records: Records, defence: Defence, batch_size: int, stage: str = INITIAL) -> Row:
    """Return the same over all tensors of the body, and over the whole message, as columns."""
    names = {"ratio_body": BODY_RATIO, "ratio_all": RATIO}
    row: Row = {}
    for column, name in names.items():
        row |= columns(column, _ratio(study, records, defence, batch_size, stage, name))
    return row


def features(study: Study, records: Records, defence: Defence, stage: str) -> Reading | None:
    """Return the error of single examples' features read off the public head."""
    cells = _attack_cells(study, records, defence, 1, FEATURES, stage)
    return mean_over_seeds(cells, FEATURES, optional=True)


def mean_over_seeds(
    cells: Records, name: str, against: str | None = None, layer: str | None = None, optional: bool = False
) -> Reading | None:
    """Return a reading's mean over all seeds that were planned; None if one of them failed, or lacks it.

    Its interval is that of `statistics.pooling`, over victims or test images and over seeds. A mean over fewer seeds
    would be another number.

    Args:
        cells: those that differ in their seeds alone.
        name: the reading's name.
        against: `raw` or `used`; None takes the first there is.
        layer: as messages name it; None for a reading without one.
        optional: whether a cell that was done may lack it.
    """
    readings = cells.done.readings(name, against, layer, optional)
    return pool(list(readings.values())) if readings and len(readings) == len(cells.by_seed()) else None


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


def seeds_of(study: Study, count: int | None = None) -> tuple[int, ...]:
    """Return the seeds of what is repeated: so many, or as many as a study has."""
    return tuple(range(study.seed, study.seed + (study.seeds if count is None else count)))


def has_fewer_seeds(study: Study, sweep: Sweep) -> bool:
    """Return whether the attacks of a sweep are repeated less often than what the study's claims rest on."""
    return sweep.seeds is not None and sweep.seeds < study.seeds


def make_plan(
    title: str,
    scenarios: dict[str, Scenario],
    defences: Iterable[Defence],
    probes: dict[str, Probe],
    seeds: tuple[int, ...],
    **grid: Any,
) -> Plan:
    """Return an audit with one victim, or what `grid` says."""
    return Plan(
        title=title,
        scenarios=scenarios,
        defences=tuple(defences),
        probes=probes,
        grid=Grid(seeds=seeds, **{"victims": 1, **grid}),
    )


def steps_per_epoch(study: Study, clients: int, batch_size: int) -> int:
    """Return how many steps take one participant once through what it owns, on average."""
    return max(1, len(study.data.load().train) // clients // batch_size)


def train_in_turn(study: Study) -> Federated:
    """Return the training run behind the accuracies: round robin, observed by the gradient of one batch."""
    steps = study.local_steps or steps_per_epoch(study, PARTICIPANTS, study.batch_size)
    return Federated(
        data=study.data,
        # The attack's network saw pixels as they are in the paper's public code; so does the training.
        model=DLNet(activation=study.activation),
        normalise=False,
        participants=PARTICIPANTS,
        protocol=RoundRobin(optimiser=Adam(learning_rate=study.learning_rate), local_steps=steps),
        observed=FedSGD(),
        rounds=study.rounds,
        batch_size=study.batch_size,
        device=study.device,
    )


def initial_federation(study: Study) -> Federated:
    """Return the federation at its start, from which gradients are attacked."""
    return Federated(
        data=study.data,
        model=DLNet(activation=study.activation),
        normalise=False,
        participants=PARTICIPANTS,
        protocol=FedSGD(),
        rounds=0,
        device=study.device,
    )


def hardened_variants(study: Study) -> list[Defence]:
    """Return the hardened variants of a study, from polarization as published on."""
    return [hardened(study.hardened_alpha2, std) for std in (0.0, *study.head_noise)]


def _drop_repeated(defences: Iterable[Defence]) -> list[Defence]:
    """Return defences without repeating one: the hardened variant without noise may be in a sweep."""
    return list({defence.key: defence for defence in defences}.values())


def _trained_audit(study: Study) -> str:
    return f"{study.name}-trained"


def _attack_audit(study: Study, sweep: Sweep) -> str:
    return f"{study.name}-attack-{'-'.join(map(str, sweep.batch_sizes))}"


def _labels_audit(study: Study, sweep: Sweep) -> str:
    return f"{study.name}-labels-{'-'.join(map(str, sweep.batch_sizes))}"


def _ablation_audit(study: Study) -> str:
    return f"{study.name}-ablations"


def _attack_cells(
    study: Study, records: Records, defence: Defence, batch_size: int, attack: str, stage: str
) -> Records:
    if stage == TRAINED:
        audits = [_trained_audit(study)]
    else:
        audits = [*(_attack_audit(study, sweep) for sweep in study.sweeps), _ablation_audit(study)]
        audits += [_labels_audit(study, sweep) for sweep in study.sweeps if has_fewer_seeds(study, sweep)]
    return records.where(*audits, label=attack, batch_size=batch_size, defence=defence)


def _ratio(study: Study, records: Records, defence: Defence, batch_size: int, stage: str, name: str) -> Reading | None:
    cells = _attack_cells(study, records, defence, batch_size, ATTACK, stage)
    # A private head that has learned its codes adds nothing to a gradient.
    return mean_over_seeds(cells, name, "raw", optional=isinstance(defence, Undefended) or stage == TRAINED)


def _plan_trained(study: Study) -> Plan:
    first = study.sweeps[0]
    defences = _drop_repeated([*sweep_mechanisms(study.noise, study.alpha2).values(), *hardened_variants(study)])
    probes: dict[str, Probe] = {"utility": Utility(), **_probes(first)}
    return make_plan(
        f"{study.name}: trained networks",
        {"round robin": train_in_turn(study)},
        defences,
        probes,
        seeds_of(study),
        stages=("end",),
        victims=first.victims,
    )


def _attacks(study: Study, sweep: Sweep) -> Plan:
    """Attack by the paper's attack, by label reading and by the suite; the first sweep has the hardened variant too."""
    defences = list(sweep_mechanisms(sweep.noise, sweep.alpha2).values())
    if sweep == study.sweeps[0]:
        defences = _drop_repeated([*defences, *hardened_variants(study)])
    return _on_initial(study, sweep, "attacks", defences, _probes(sweep), seeds_of(study, sweep.seeds))


def _read_labels(study: Study, sweep: Sweep) -> Plan:
    """Read labels alone, of every mechanism of a sweep."""
    defences = list(sweep_mechanisms(sweep.noise, sweep.alpha2).values())
    return _on_initial(study, sweep, "labels", defences, {LABELS: _probes(sweep)[LABELS]}, seeds_of(study))


def _on_initial(
    study: Study,
    sweep: Sweep,
    title: str,
    defences: Sequence[Defence],
    probes: dict[str, Probe],
    seeds: tuple[int, ...],
) -> Plan:
    """Return an audit of the initial network at the batch sizes of a sweep."""
    grid: dict[str, Any] = {"batch_sizes": sweep.batch_sizes, "victims": sweep.victims}
    scenarios: dict[str, Scenario] = {"one gradient": initial_federation(study)}
    return make_plan(f"{study.name}: {title}", scenarios, defences, probes, seeds, **grid)


def _ablations(study: Study) -> Plan:
    defences = [spn(alpha2, bits) for bits in study.bits for alpha2 in study.bits_alpha2]
    defences += [laplace(scale) for scale in study.laplace]
    first = study.sweeps[0]
    probes = {ATTACK: _probes(first)[ATTACK]}
    scenarios: dict[str, Scenario] = {"one gradient": initial_federation(study)}
    seeds = seeds_of(study)
    return make_plan(f"{study.name}: ablations", scenarios, defences, probes, seeds, victims=first.victims)


def _probes(sweep: Sweep) -> dict[str, Probe]:
    """Return the attacks of a sweep: the paper's, label reading, and all of who knows mechanism and public examples."""
    knowing = ThreatModel(knows=frozenset({Knows.LOCAL_STEPS, Knows.DEFENCE, Knows.AUXILIARY}))
    members = {} if sweep.effort == 1 else scale(whole_suite(), sweep.effort)
    return {
        ATTACK: Attempt(attack=preset(ATTACK, iterations=sweep.iterations), metrics=METRICS),
        LABELS: Attempt(attack=LABELS_READ, metrics=METRICS),
        FEATURES: HeadFeatures(),
        STRONGEST: Attempt(attack=Strongest(members=members), threat=knowing, metrics=METRICS),
    }
