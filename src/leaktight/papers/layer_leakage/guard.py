"""Guard: noise on some layers, or sealing them, against noise on all at equal accuracy. A table of our own."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from leaktight.attacks.property_inference import PropertyInference
from leaktight.core.defence import Defence, Undefended
from leaktight.core.metric import Reading
from leaktight.core.probe import Attempt
from leaktight.core.threat import Knows, ThreatModel
from leaktight.defences import GaussianNoise, LayerGuard, Sealed
from leaktight.learning.optimiser import Sgd
from leaktight.learning.protocol import FedSGD
from leaktight.metrics import PropertyAuc
from leaktight.papers.check import Check, at_most
from leaktight.papers.layer_leakage import audits
from leaktight.papers.layer_leakage.networks import NETWORKS
from leaktight.papers.layer_leakage.scales import Study
from leaktight.papers.paper import Experiment, Plans
from leaktight.papers.records import Records
from leaktight.papers.row import Row, over_runs, over_seeds, reading_of
from leaktight.plans.plan import Grid, Plan

NONE, NOISE, GUARD, SEALED = "none", "noise on all layers", "noise on some layers", "sealed layers"
GAP = "gap"
"""The AUC of a defence less that of noise on all layers at the same accuracy."""
LEAST = 2
"""In how many training runs a defence must be comparable for a gap to be given, where there are several."""
NOTE = (
    "The table `guard` is ours. Layers are ranked by a small shadow attack on public data (`public` of `layer_guard`), "
    "and the attacker knows the defence and models it. `gap` compares with noise on all layers in the same training "
    "runs, by a straight line between the two strengths whose accuracies lie next to its own; beyond the strongest and "
    "the weakest there is nothing to compare with. `compared` counts the runs in which there is; where it is one of "
    "several, no gap is given."
)


class Setting(NamedTuple):
    """One defence of the comparison."""

    kind: str
    layers: int
    std: float
    defence: Defence


def settings(study: Study) -> Iterator[Setting]:
    """Give every defence: none, noise on all layers, and noise on or sealing of some."""
    guarding, public = study.guarding, study.subjects[0].data
    yield Setting(NONE, 0, 0.0, Undefended())
    for std in guarding.stds:
        yield Setting(NOISE, 0, std, GaussianNoise(std=std))
    for count in guarding.counts:
        for std in guarding.stds:
            yield Setting(GUARD, count, std, LayerGuard(guard=GaussianNoise(std=std), count=count, public=public))
        yield Setting(SEALED, count, 0.0, LayerGuard(guard=Sealed(), count=count, public=public))


def plans(study: Study) -> Plans:
    """Train the first subject under each defence, and attack it throughout."""
    subject, guarding = study.subjects[0], study.guarding
    knows = frozenset({Knows.AUXILIARY, Knows.LOCAL_STEPS, Knows.DEFENCE})
    attack = PropertyInference(layers="each", gradients=guarding.gradients, models_defence=True)
    scenario = audits.federation(
        study,
        subject,
        guarding.network,
        rounds=guarding.rounds,
        protocol=FedSGD(optimiser=Sgd(learning_rate=guarding.learning_rate)),
    )
    plan = Plan(
        title=f"{subject.data_set}, {subject.task}, {subject.private}: some layers or all",
        scenarios={guarding.network: scenario},
        defences=tuple(setting.defence for setting in settings(study)),
        probes={
            audits.FOREST: Attempt(
                attack=attack, threat=ThreatModel(seat=study.seat, knows=knows), metrics=(PropertyAuc(),)
            )
        },
        grid=Grid(
            seeds=audits.seeds_of(study, study.seeds),
            stages=("training",),
            batch_sizes=(study.batch_size,),
            victims=guarding.messages,
        ),
    )
    return {audits.audit_name(subject, audits.GUARDED): plan}


def rows(study: Study, records: Records) -> list[Row]:
    """Return a row for each defence: its accuracy, what is told under it, and the gap."""
    subject, network = study.subjects[0], study.guarding.network
    measured: dict[Setting, tuple[Mapping[int, Reading], Mapping[int, Reading]]] = {}
    for setting in settings(study):
        own = records.where(
            audits.audit_name(subject, audits.GUARDED), defence=setting.defence, model=NETWORKS[network]
        ).done
        measured[setting] = own.readings("accuracy", optional=True), own.readings(audits.AUC)
    plain = [measured[setting] for setting in measured if setting.kind in (NONE, NOISE)]
    rows: list[Row] = []
    for setting, (accuracies, aucs) in measured.items():
        row: Row = {
            "data_set": subject.data_set,
            "task": subject.task,
            "property": subject.private,
            "network": network,
            "defence": setting.kind,
            "layers": setting.layers,
            "std": setting.std,
            **over_runs("accuracy", accuracies.values()),
            **over_runs(audits.AUC, aucs.values()),
        }
        gaps = [_gap(seed, accuracies[seed].value, aucs[seed].value, plain) for seed in accuracies if seed in aucs]
        compared = [gap for gap in gaps if gap is not None] if setting.kind in (GUARD, SEALED) else []
        # One training run of several says nothing of the others, and would stand there without an interval.
        enough = compared if len(compared) >= min(LEAST, study.seeds) else []
        rows.append({**row, **over_seeds(GAP, enough), "compared": len(compared)})
    return rows


def checks(rows: Sequence[Row]) -> list[Check]:
    """Ask whether guarding some layers leaks less than noise on all does at the same accuracy."""
    checks = []
    for row in rows:
        if row["defence"] in (GUARD, SEALED):
            std = f", std {row['std']:g}" if row["std"] else ""
            own = f"Property AUC({row['defence']}, {row['layers']}{std})"
            name = f"{own} - property AUC({NOISE}), equal accuracy"
            checks.append(at_most(name, reading_of(row, GAP), 0))
    return checks


def _gap(
    seed: int, accuracy: float, auc: float, plain: Sequence[tuple[Mapping[int, Reading], Mapping[int, Reading]]]
) -> float | None:
    """Return how much more is told than under noise on all layers at this accuracy, in one training run."""
    points = sorted((own[seed].value, told[seed].value) for own, told in plain if seed in own and seed in told)
    if not points or not points[0][0] <= accuracy <= points[-1][0]:
        return None
    for (left, low), (right, high) in itertools.pairwise(points):
        if left <= accuracy <= right:
            return auc - (low + (high - low) * (accuracy - left) / (right - left) if right > left else min(low, high))
    return auc - points[0][1]


EXPERIMENT = Experiment(
    table="guard",
    keys=("data_set", "task", "property", "network", "defence", "layers", "std"),
    plans=plans,
    rows=rows,
    checks=checks,
    notes=lambda study: [NOTE],
)
