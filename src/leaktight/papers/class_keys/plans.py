"""Plans: the audits that a scope takes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping

from leaktight.core.defence import Defence
from leaktight.core.scenario import Scenario
from leaktight.data.by_class import ByClass
from leaktight.defences.class_keys import ClassKeys
from leaktight.learning.federated import Federated
from leaktight.learning.optimiser import DecayedSgd
from leaktight.learning.protocol import FedSGD, RoundRobin
from leaktight.papers.class_keys.mechanisms import ATTACKER, ESTIMATED, PLAIN, RANDOM, attempt, frameworks, guesses, others
from leaktight.papers.class_keys.settings import Central, Scope, Study
from leaktight.papers.paper import Plans
from leaktight.plans.plan import Grid, Plan
from leaktight.probes import Utility

LEARNING, PARTICIPANTS, SHARED, CENTRAL = "learning", "participants", "shared", "central"
GUESSED, KNOWN, TOLD, CROWD = "guessed", "known", "told", "crowd"
UTILITY = "utility"
BEHIND = 16
"""How many examples are behind a message once training is over; what the attacker has learned by then does not depend on it."""
Owned = tuple[tuple[int, ...], ...]


def plans_of(scope: Scope, seed: int) -> Plans:
    """Return the audits of a scope by name: accuracies first, then attacks, a plan for each seed and its victim."""
    found: Plans = {}
    for study in scope.studies:
        found[folder(study.name, LEARNING)] = _learning(study, seed)
        if len(study.participants) > 1:
            found[folder(study.name, PARTICIPANTS)] = _participants(study, seed)
        found[folder(study.name, SHARED)] = _shared(study, seed)
        for repeat in range(study.seeds):
            found[folder(study.name, GUESSED, repeat)] = _guessed(study, seed, repeat)
            found[folder(study.name, KNOWN, repeat)] = _known(study, seed, repeat)
            found[folder(study.name, TOLD, repeat)] = _told(study, seed, repeat)
        if study.crowd > 2:
            found[folder(study.name, CROWD)] = _crowd(study, seed)
    for one in scope.central:
        found[folder(one.name, CENTRAL)] = _central(one, seed)
    return found


def folder(name: str, part: str, repeat: int | None = None) -> str:
    """Return the name of an audit, which also names a folder.

    Example:
        >>> folder("Olivetti Faces", KNOWN, 1)
        'olivetti-faces-known-1'
    """
    end = "" if repeat is None else f"-{repeat}"
    return f"{name.lower().replace(' ', '-')}-{part}{end}"


def dealt(classes: int, participants: int) -> Owned:
    """Return the classes of each participant: consecutive ones, as evenly as they go.

    Example:
        >>> dealt(10, 3)
        ((0, 1, 2), (3, 4, 5), (6, 7, 8, 9))
    """
    ends = [classes * part // participants for part in range(participants + 1)]
    return tuple(tuple(range(first, last)) for first, last in itertools.pairwise(ends))


def overlapping(classes: int) -> Owned:
    """Return the classes of two participants that share two fifths of them.

    Example:
        >>> overlapping(10)
        ((0, 1, 2, 3, 4, 5, 6), (3, 4, 5, 6, 7, 8, 9))
    """
    most = math.ceil(0.7 * classes)
    return tuple(range(most)), tuple(range(classes - most, classes))


def victim_of(study: Study, repeat: int) -> int:
    """Return the class that is attacked in a repeat."""
    return study.victims[repeat % len(study.victims)]


def federation(study: Study, owned: Owned, rounds: int, spare: int = 0) -> Federated:
    """Return the collaborative framework: participants take turns with the classes that they own."""
    return Federated(
        data=study.data,
        model=study.network,
        partition=ByClass(owned=owned),
        participants=len(owned),
        protocol=RoundRobin(local_steps=study.local_steps, local_epochs=study.local_epochs or None, optimiser=study.optimiser),
        rounds=rounds,
        batch_size=study.batch_size,
        spare_classes=spare,
        device=study.device,
    )


def _learning(study: Study, seed: int) -> Plan:
    """Train without an attacker for different times (Fig. 3): a training that ends earlier begins like one that ends later."""
    owned = dealt(study.classes, study.participants[0])
    scenarios: dict[str, Scenario] = {f"{rounds} rounds": federation(study, owned, rounds) for rounds in study.looks}
    return _honest(study, "accuracy over training", scenarios, frameworks(study.fixed, study.learned), seed)


def _participants(study: Study, seed: int) -> Plan:
    """Train with more participants to the end (Fig. 3)."""
    scenarios: dict[str, Scenario] = {
        f"{count} participants": federation(study, dealt(study.classes, count), study.rounds)
        for count in study.participants[1:]
    }
    return _honest(study, "more participants", scenarios, frameworks((study.dimensions,)), seed)


def _shared(study: Study, seed: int) -> Plan:
    """Train participants some of whose classes are the same (section 5.4)."""
    scenarios: dict[str, Scenario] = {"shared classes": federation(study, overlapping(study.classes), study.rounds)}
    return _honest(study, "shared classes", scenarios, frameworks((study.dimensions,)), seed)


def _honest(study: Study, title: str, scenarios: dict[str, Scenario], compared: Mapping[str, Defence], seed: int) -> Plan:
    return Plan(
        title=f"{study.name}: {title}",
        scenarios=scenarios,
        defences=tuple(defence for name, defence in compared.items() if name != PLAIN),
        probes={UTILITY: Utility()},
        grid=Grid(seeds=tuple(range(seed, seed + study.seeds)), victims=1),
    )


def _guessed(study: Study, seed: int, repeat: int) -> Plan:
    """Attack without any knowledge of a key: the plain framework, keys of all lengths (experiment III), and other defences."""
    compared = {**frameworks(study.guessed), **others(study.noises, study.shares)}
    attack = study.attack.model_copy(update={"victim_class": victim_of(study, repeat), "class_key": "random"})
    return Plan(
        title=f"{study.name}: attack on class {attack.victim_class}",
        scenarios={"one attacker": federation(study, dealt(study.classes, 2), study.rounds, spare=1)},
        defences=tuple(defence for name, defence in compared.items() if name != PLAIN),
        probes={RANDOM: attempt(attack)},
        grid=_end(2, seed + repeat),
    )


def _known(study: Study, seed: int, repeat: int) -> Plan:
    """Attack with the victim's key, or one at a distance from it (experiments I and II)."""
    attack = study.attack.model_copy(update={"victim_class": victim_of(study, repeat)})
    return Plan(
        title=f"{study.name}: attack on class {attack.victim_class}, knowing of its key",
        scenarios={"one attacker": federation(study, dealt(study.classes, 2), study.rounds, spare=1)},
        defences=(ClassKeys(dimensions=study.dimensions),),
        probes={name: attempt(each) for name, each in guesses(attack, study.distances).items()},
        grid=_end(2, seed + repeat),
        bare=False,
    )


def _told(study: Study, seed: int, repeat: int) -> Plan:
    """Attack with a key that is estimated from what the victim's updates tell of its keys."""
    attack = study.attack.model_copy(update={"victim_class": victim_of(study, repeat), "class_key": "estimated"})
    return Plan(
        title=f"{study.name}: attack on class {attack.victim_class}, with a key estimated from updates",
        scenarios={"one attacker": federation(study, dealt(study.classes, 2), study.rounds, spare=1)},
        defences=tuple(ClassKeys(dimensions=dimensions) for dimensions in study.estimated),
        probes={ESTIMATED: attempt(attack)},
        grid=_end(2, seed + repeat),
        bare=False,
    )


def _crowd(study: Study, seed: int) -> Plan:
    """Let all but one participant attack that one with keys of their own (Fig. 6)."""
    accomplices = tuple(name for number in range(1, study.crowd) if (name := f"client-{number}") != ATTACKER)
    given = {"victim_class": victim_of(study, 0), "class_key": "random", "accomplices": accomplices}
    attack = study.attack.model_copy(update=given)
    return Plan(
        title=f"{study.name}: {study.crowd - 1} attackers on class {attack.victim_class}",
        scenarios={f"{study.crowd - 1} attackers": federation(study, _crowded(study), study.rounds, spare=1)},
        defences=(ClassKeys(dimensions=study.dimensions),),
        probes={RANDOM: attempt(attack)},
        grid=_end(study.crowd, *range(seed, seed + study.seeds)),
    )


def _crowded(study: Study) -> Owned:
    """Return the victim's half of the classes, and the other half dealt out to the attackers."""
    victim, rest = dealt(study.classes, 2)
    return victim, *(tuple(rest[place] for place in part) for part in dealt(len(rest), study.crowd - 1))


def _end(participants: int, *seeds: int) -> Grid:
    return Grid(seeds=seeds, stages=("end",), batch_sizes=(BEHIND,), victims=participants)


def _central(one: Central, seed: int) -> Plan:
    """Train in one place, by keys and by cross entropy (Table 1)."""
    optimiser = DecayedSgd(learning_rate=one.learning_rate, momentum=0.9, factor=0.1, rounds=(max(1, 3 * one.steps // 4),))
    scenario = Federated(
        data=one.data,
        model=one.network,
        participants=1,
        protocol=FedSGD(optimiser=optimiser),
        rounds=one.steps,
        batch_size=one.batch_size,
        device=one.device,
    )
    return Plan(
        title=f"{one.name}: trained in one place",
        scenarios={"centralised": scenario},
        defences=(ClassKeys(dimensions=one.dimensions),),
        probes={UTILITY: Utility()},
        grid=Grid(seeds=tuple(range(seed, seed + one.seeds)), victims=1),
    )
