"""Audits that several tables share: honest training runs and attacks on one participant; and what they measured."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping

from leaktight.attacks.gan import GanAttack
from leaktight.core.defence import Defence, Undefended
from leaktight.core.scenario import Scenario
from leaktight.data.by_class import ByClass
from leaktight.defences.class_keys import ClassKeys
from leaktight.learning.federated import Federated
from leaktight.learning.protocol import RoundRobin
from leaktight.papers.check import Check, at_most
from leaktight.papers.class_keys.mechanisms import (
    PLAIN,
    RANDOM,
    RATIOS,
    SHARES,
    attempt,
    frameworks,
    guesses,
    other_defences,
)
from leaktight.papers.class_keys.scales import Scope, Study
from leaktight.papers.paper import Plans
from leaktight.papers.records import Records
from leaktight.papers.row import Row, over_seeds, reading_of
from leaktight.plans.plan import Grid, Plan
from leaktight.probes import ParticipantAccuracy, Utility
from leaktight.probes.participant_accuracy import NAME as BY_PARTICIPANTS

GUESSED, KNOWN = "guessed", "known"
UTILITY, PARTICIPANTS = "utility", "participants"
BEHIND = 16
"""How many examples are behind a message once training is over; what the attacker has learned by then does not depend
on it."""
LEAKS, STOPPED = 0.6, 0.1
"""Which share of recognised samples is a success, and which is none."""
KEPT = 0.97
"""How much of the plain framework's accuracy keys must keep."""
CONTROLLED = "recognised", "recognised_any"
"""Scores that mean nothing without the same score of public examples, or of what a random key brings out."""
BySeed = Mapping[int, float]
Owned = tuple[tuple[int, ...], ...]


def audit_name(name: str, part: str, repeat: int | None = None) -> str:
    """Return the name of an audit, which also names a folder.

    Example:
        >>> audit_name("Olivetti Faces", KNOWN, 1)
        'olivetti-faces-known-1'
    """
    end = "" if repeat is None else f"-{repeat}"
    return f"{name.lower().replace(' ', '-')}-{part}{end}"


def repeated_audits(study: Study, part: str) -> list[str]:
    """Return the names of the audits of a part that has one for each repeat."""
    return [audit_name(study.name, part, repeat) for repeat in range(study.seeds)]


def plan_attacks_without_key(scope: Scope) -> Plans:
    """Attack without a key: the plain framework, keys of all lengths (experiment III), and other defences."""
    plans: Plans = {}
    for study in scope.studies:
        compared = {**frameworks(study.guessed), **other_defences(study.noises, study.shares)}
        defences = [defence for name, defence in compared.items() if name != PLAIN]
        for repeat, audit in enumerate(repeated_audits(study, GUESSED)):
            # A random key is what others are compared with.
            attack = attack_in(study, repeat, class_key="random", controls=0)
            plans[audit] = plan_attack(scope, study, repeat, "", defences, {RANDOM: attack})
    return plans


def plan_attacks_with_key(scope: Scope) -> Plans:
    """Attack with the victim's key, or one at a distance from it (experiments I and II)."""
    plans: Plans = {}
    for study in scope.studies:
        for repeat, audit in enumerate(repeated_audits(study, KNOWN)):
            attacks = guesses(attack_in(study, repeat), study.distances)
            defences = [ClassKeys(dimensions=study.dimensions)]
            plans[audit] = plan_attack(scope, study, repeat, ", knowing of its key", defences, attacks, bare=False)
    return plans


def attack_in(study: Study, repeat: int, **knowledge: object) -> GanAttack:
    """Return the attack of a repeat, which has a victim class of its own."""
    victim = study.victims[repeat % len(study.victims)]
    return study.attack.model_copy(update={"victim_class": victim, **knowledge})


def plan_attack(
    scope: Scope,
    study: Study,
    repeat: int,
    how: str,
    defences: Iterable[Defence],
    attacks: Mapping[str, GanAttack],
    bare: bool = True,
) -> Plan:
    """Return an audit in which one of two participants attacks the other.

    Args:
        scope: all that is asked for.
        study: the data set.
        repeat: which repeat, from 0; it decides the seed and the victim class.
        how: the end of the title.
        defences: what is attacked.
        attacks: by label.
        bare: whether the plain framework is attacked too.
    """
    victim = attack_in(study, repeat).victim_class
    return Plan(
        title=f"{study.name}: attack on class {victim}{how}",
        scenarios={"one attacker": make_federation(study, deal_classes(study.classes, 2), study.rounds, spare=1)},
        defences=tuple(defences),
        probes={name: attempt(attack) for name, attack in attacks.items()},
        grid=at_end(2, scope.seed + repeat),
        bare=bare,
    )


def plan_honest(
    scope: Scope, study: Study, title: str, scenarios: Mapping[str, Scenario], compared: Mapping[str, Defence]
) -> Plan:
    """Return an audit of training runs without an attacker: the joint model's accuracy, and its participants'."""
    participants = max(getattr(scenario, "participants", 1) for scenario in scenarios.values())
    seeds = range(scope.seed, scope.seed + study.seeds)
    return Plan(
        title=f"{study.name}: {title}",
        scenarios=dict(scenarios),
        defences=tuple(defence for name, defence in compared.items() if name != PLAIN),
        probes={UTILITY: Utility(), PARTICIPANTS: ParticipantAccuracy()},
        grid=Grid(seeds=tuple(seeds), stages=("end",), batch_sizes=(BEHIND,), victims=participants),
    )


def at_end(participants: int, *seeds: int) -> Grid:
    """Return the grid of an attack that is read at the end of the training run."""
    return Grid(seeds=seeds, stages=("end",), batch_sizes=(BEHIND,), victims=participants)


def make_federation(study: Study, owned: Owned, rounds: int, spare: int = 0) -> Federated:
    """Return the collaborative framework: participants take turns with the classes that they own."""
    return Federated(
        data=study.data,
        model=study.network,
        partition=ByClass(owned=owned),
        participants=len(owned),
        protocol=RoundRobin(
            local_steps=study.local_steps,
            local_epochs=study.local_epochs or None,
            optimiser=study.optimiser,
            moments=study.moments,
        ),
        rounds=rounds,
        batch_size=study.batch_size,
        spare_classes=spare,
        device=study.device,
    )


def deal_classes(classes: int, participants: int) -> Owned:
    """Return the classes of each participant: consecutive ones, as evenly as they go.

    Example:
        >>> deal_classes(10, 3)
        ((0, 1, 2), (3, 4, 5), (6, 7, 8, 9))
    """
    ends = [classes * part // participants for part in range(participants + 1)]
    return tuple(tuple(range(first, last)) for first, last in itertools.pairwise(ends))


def score_columns(records: Records, audits: Iterable[str], defence: Defence, label: str) -> Row:
    """Return every score of an attack over seeds, beside what chance and random keys get, and the model's accuracy.

    `beyond_any` is by how much more samples are recognised as any class of the victim than public examples or, where
    the attack has controls, samples of the same attack with a random key, seed by seed.
    """
    runs = records.where(*audits, label=label, defence=defence).done
    row: Row = {}
    for name in (*SHARES, *RATIOS):
        readings = list(runs.readings(name).values())
        row |= over_seeds(name, [reading.value for reading in readings], share=name in SHARES)
        levels = [reading.chance for reading in readings if reading.chance is not None]
        if name in CONTROLLED:
            row[f"{name}_chance"] = sum(levels) / len(levels) if levels else None
    each = runs.readings("recognised_any").values()
    row |= over_seeds("beyond_any", [reading.value - (reading.chance or 0.0) for reading in each])
    accuracies = runs.readings("accuracy", optional=True).values()
    return row | over_seeds("accuracy", [reading.value for reading in accuracies], share=True)


def accuracy_columns(records: Records, audit: str, defence: Defence, reference: str, **columns: object) -> Row:
    """Return the accuracy under a defence over seeds, and how much of the plain framework's that is.

    Args:
        records: what was measured.
        audit: where.
        defence: under which defence.
        reference: the name of the column with the share.
        columns: whatever else tells the cells apart.
    """
    own, plain = (_accuracies(records, audit, each, columns) for each in (defence, Undefended()))
    return {**over_seeds("accuracy", own.values(), share=True), **over_seeds(reference, ratios(own, plain))}


def ratios(one: BySeed, other: BySeed) -> list[float]:
    """Return one over the other for each seed that has both.

    Example:
        >>> ratios({0: 0.5, 1: 0.9}, {0: 1.0, 2: 1.0})
        [0.5]
    """
    return [one[seed] / other[seed] for seed in one if other.get(seed)]


def check_stopped(row: Row, who: str) -> Check:
    """Look for the class that an attacker without a key was after."""
    return at_most(f"Samples recognised as the victim's class, {who}", reading_of(row, "recognised"), STOPPED)


def check_any(row: Row, who: str) -> Check:
    """Look for any class that an attacker who estimates a key may have hit upon.

    Of who tries a random key this cannot be asked: it is compared with just such an attacker.
    """
    words = "Samples recognised as any class of the victim beyond those of another random key"
    return at_most(f"{words}, {who}", reading_of(row, "beyond_any"), STOPPED)


def participant_columns(records: Records, audit: str, defence: Defence, **columns: object) -> Row:
    """Return the mean accuracy of participants on classes of their own, over seeds."""
    runs = records.where(audit, label=PARTICIPANTS, defence=defence, **columns).done
    readings = runs.readings(BY_PARTICIPANTS, optional=True).values()
    return over_seeds("participants_accuracy", [reading.value for reading in readings], share=True)


def _accuracies(records: Records, audit: str, defence: Defence, columns: Mapping[str, object]) -> BySeed:
    """Return the accuracy of each seed; a training run that failed or diverged has none."""
    runs = records.where(audit, label=UTILITY, defence=defence, **columns).done
    return {seed: reading.value for seed, reading in runs.readings("accuracy", optional=True).items()}
