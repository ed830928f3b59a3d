"""What all audits of the paper share: the training run, attacks on one image, and how their readings become columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import Any

from leaktight import metrics
from leaktight.attacks.presets import preset
from leaktight.attacks.strongest import Strongest
from leaktight.attacks.suite import scale, whole_suite
from leaktight.core.defence import Defence
from leaktight.core.metric import Reading
from leaktight.core.probe import Attempt, Probe
from leaktight.core.threat import Knows, ThreatModel
from leaktight.learning.federated import Federated
from leaktight.learning.optimiser import DecayedSgd, Optimiser, Sgd
from leaktight.learning.protocol import FedSGD
from leaktight.papers.comparison import difference
from leaktight.papers.records import Records
from leaktight.papers.row import Row, columns, over_runs, over_seeds, reading_of, value_at
from leaktight.papers.transformation_search.mechanisms import NONE, plain_defence
from leaktight.papers.transformation_search.scales import Strength, Study, Subject
from leaktight.plans.plan import Grid, Plan, Stage
from leaktight.transforms.policy import Policy

PSNR, ACCURACY, ABOVE = "psnr", "accuracy", "psnr_above_chance"
ATTACK, STRONGEST = "Adam+Cosine", "strongest"
METRICS = (metrics.PSNR(), metrics.PSNRAboveChance(), metrics.SearchGap())
FULL = 400
"""The iterations from which on the strongest attacker has all of its effort."""
MOMENTUM = 0.9
LESS_SIMILAR = "less_similar"
"""By how much similarity is below that with no policy, seed by seed."""
PLACE = ("data_set", "network")
DROP, EQUAL = 2.0, 0.02
"""The least published drop of PSNR in dB; accuracies that count as equal."""


def audit_name(subject: Subject, part: str) -> str:
    """Return the name of one of its audits, which also names a folder."""
    return f"{subject.name}-{part}"


def make_attempt(name: str, strength: Strength, *knows: Knows) -> Attempt:
    """Return an attack whose labels are given, as the paper's are, cut to a strength."""
    whole: Any = preset(name)
    lbfgs = whole.descent.kind == "lbfgs"
    wanted = {
        "iterations": min(whole.iterations, strength.lbfgs if lbfgs else strength.iterations),
        "restarts": min(whole.restarts, strength.restarts),
    }
    return Attempt(
        attack=preset(name, labels="given", **wanted),
        threat=make_threat(*knows),
        metrics=METRICS,
    )


def make_strongest(strength: Strength) -> Attempt:
    """Return the strongest attacker, who knows the policy and public images and is given the labels.

    Args:
        strength: its iterations, of what the suite has by itself; never more.
    """
    members = scale(whole_suite(), min(1.0, strength.iterations / FULL))
    return Attempt(
        attack=Strongest(members=members), threat=make_threat(Knows.DEFENCE, Knows.AUXILIARY), metrics=METRICS
    )


def make_threat(*knows: Knows) -> ThreatModel:
    """Return an attacker at the server who knows the labels, and whatever else."""
    return ThreatModel(knows=frozenset({Knows.LOCAL_STEPS, Knows.LABELS, *knows}))


def make_scenario(study: Study, subject: Subject) -> Federated:
    """Return the training of a subject by federated SGD."""
    rounds = study.rounds_of(subject)
    return Federated(
        data=subject.data,
        model=subject.model,
        participants=study.participants,
        protocol=FedSGD(optimiser=_sgd(study, subject, rounds)),
        rounds=rounds,
        batch_size=study.batch_size,
        device=study.device,
    )


def make_plan(
    title: str,
    scenario: Federated,
    defences: Iterable[Defence],
    probes: dict[str, Probe],
    seeds: tuple[int, ...],
    victims: int,
    stages: tuple[Stage, ...],
    batch_sizes: tuple[int, ...] = (1,),
) -> Plan:
    """Return an audit of one training, by default on gradients of one image."""
    return Plan(
        title=title,
        scenarios={"training": scenario},
        defences=tuple(defences),
        probes=probes,
        grid=Grid(seeds=seeds, stages=stages, batch_sizes=batch_sizes, victims=victims),
    )


def make_title(subject: Subject, what: str) -> str:
    """Return the title of an audit."""
    return f"{subject.data_set}, {subject.network}: {what}"


def seeds_from(study: Study, count: int) -> tuple[int, ...]:
    """Return so many seeds, from the study's on."""
    return tuple(range(study.seed, study.seed + count))


def place_of(subject: Subject) -> Row:
    """Return the columns that name a subject."""
    return {"data_set": subject.data_set, "network": subject.network}


def name_of(policy: Policy | None) -> str:
    """Return a policy as text, or that there is none."""
    return NONE if policy is None else str(policy)


def attack_columns(study: Study, cells: Records, defences: Sequence[Defence]) -> Row:
    """Return the PSNR under one of several defences, against the image that was used and against the original.

    `chance` is the PSNR against the used image of the best answer that needs no message, `psnr_above_chance` what an
    attack adds to it, `psnr_drop` how much less PSNR there is than without a policy, and `above_chance_drop` how much
    less of what the attack adds.

    Args:
        study: what was planned.
        cells: those of one attack at one stage, under every defence.
        defences: which of them.
    """
    used, raw = (readings_of(cells, defences, PSNR, against) for against in ("used", "raw"))
    above, above_raw = (readings_of(cells, defences, ABOVE, against) for against in ("used", "raw"))
    pairs = zip(used, above, strict=False)
    chances = [whole.value - more.value for whole, more in pairs]
    return {
        **over_runs(PSNR, used),
        **over_runs("psnr_original", raw),
        "chance": fmean(chances) if chances else None,
        **over_runs(ABOVE, above),
        **over_runs(f"{ABOVE}_original", above_raw),
        **columns("psnr_drop", _drop(study, cells, defences, PSNR)),
        **columns("above_chance_drop", _drop(study, cells, defences, ABOVE)),
    }


def learning_columns(study: Study, cells: Records, defences: Sequence[Defence]) -> Row:
    """Return the test accuracy under one of several defences, its change from none, and the number of training runs."""
    readings = readings_of(cells, defences, ACCURACY)
    return {
        **over_runs(ACCURACY, readings),
        **columns("accuracy_change", _change(study, cells, defences)),
        "trainings": len(readings),
    }


def readings_of(cells: Records, defences: Sequence[Defence], name: str, against: str | None = None) -> list[Reading]:
    """Return a reading under each defence for each seed that was done; a training run that diverged has no accuracy."""
    return [
        reading
        for defence in defences
        for reading in cells.where(defence=defence).done.readings(name, against, optional=name == ACCURACY).values()
    ]


def gain_over_chance(rows: Sequence[Row]) -> Reading | None:
    """Return by how much PSNR without a policy is above the best answer that needs no gradient."""
    return value_at(rows, ABOVE, policy=NONE)


def drop_with(rows: Sequence[Row], policy: str) -> Reading | None:
    """Return by how much a policy lowers what the attack adds to the best answer that needs no gradient.

    None where the attack adds nothing without a policy either: it fails then, whatever becomes of images.
    """
    gain = gain_over_chance(rows)
    return value_at(rows, "above_chance_drop", policy=policy) if gain is not None and gain.value > 0 else None


def _sgd(study: Study, subject: Subject, rounds: int) -> Optimiser:
    settings: dict[str, Any] = {
        "learning_rate": subject.learning_rate,
        "momentum": MOMENTUM,
        "weight_decay": study.weight_decay,
    }
    if not study.decayed:
        return Sgd(**settings)
    return DecayedSgd(factor=0.1, rounds=tuple(rounds * eighths // 8 for eighths in (3, 5, 7)), **settings)


def _drop(study: Study, cells: Records, defences: Sequence[Defence], name: str) -> Reading | None:
    """Compare a reading on the same images: over training runs if there are several, over the images of one."""
    pairs = _pairs(study, cells, defences, name, "used")
    if len(pairs) == 1:
        [(_, before, after)] = pairs
        return _mean([one - other for one, other in zip(before.each, after.each, strict=False)])
    return _mean(_by_seed([(seed, before.value - after.value) for seed, before, after in pairs]))


def _change(study: Study, cells: Records, defences: Sequence[Defence]) -> Reading | None:
    pairs = _pairs(study, cells, defences, ACCURACY, None)
    if len(pairs) == 1:
        [(_, before, after)] = pairs
        return difference(after, before)
    return _mean(_by_seed([(seed, after.value - before.value) for seed, before, after in pairs]))


def _pairs(
    study: Study, cells: Records, defences: Sequence[Defence], name: str, against: str | None
) -> list[tuple[int, Reading, Reading]]:
    """Return each seed with its readings without a policy and with one of the defences."""
    optional = name == ACCURACY
    plain = cells.where(defence=plain_defence(study)).done.readings(name, against, optional=optional)
    return [
        (seed, plain[seed], reading)
        for defence in defences
        for seed, reading in cells.where(defence=defence).done.readings(name, against, optional=optional).items()
        if seed in plain
    ]


def _by_seed(values: Sequence[tuple[int, float]]) -> list[float]:
    """Return one mean for each seed, whose values share a training run; of a single seed, the values themselves."""
    seeds = dict.fromkeys(seed for seed, _ in values)
    if len(seeds) == 1:
        return [value for _, value in values]
    return [fmean(value for own, value in values if own == seed) for seed in seeds]


def _mean(values: Sequence[float]) -> Reading | None:
    return reading_of(over_seeds("mean", values), "mean")
