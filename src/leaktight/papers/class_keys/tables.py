"""Tables: the paper's figures in numbers, from the records of our audits."""

from __future__ import annotations

from collections.abc import Sequence

from leaktight.core.defence import Defence, Undefended
from leaktight.core.record import Record
from leaktight.defences.class_keys import ClassKeys
from leaktight.papers.class_keys.geometry import overlap_rows, shared_rows
from leaktight.papers.class_keys.measured import ACCURACY, Measured, chance, ratios, values
from leaktight.papers.class_keys.mechanisms import (
    DIVERSITY,
    ESTIMATED,
    EXACT,
    PLAIN,
    RANDOM,
    SCORES,
    distant,
    frameworks,
    guesses,
    keys,
    others,
)
from leaktight.papers.class_keys.plans import (
    CENTRAL,
    CROWD,
    GUESSED,
    KNOWN,
    LEARNING,
    PARTICIPANTS,
    SHARED,
    TOLD,
    UTILITY,
)
from leaktight.papers.class_keys.settings import Central, Scope, Study
from leaktight.papers.paper import Records
from leaktight.papers.reproduction import Row, Tables, over_seeds

REGRESSION, ENTROPY = "key-based regression", "cross entropy"


def tables_of(scope: Scope, records: Records, seed: int) -> Tables:
    """Return every table, in the order of the paper."""
    pairs = [(study, Measured(study.name, records)) for study in scope.studies]
    return {
        "key_overlap": overlap_rows(scope, seed),
        "learning": [row for pair in pairs for row in _learning(*pair)],
        "experiments": [row for pair in pairs for row in _experiments(*pair)],
        "distances": [row for pair in pairs for row in _distances(*pair)],
        "several_attackers": [row for pair in pairs for row in _crowd(*pair)],
        "other_defences": [row for pair in pairs for row in _others(*pair)],
        "shared_keys": shared_rows(scope, seed),
        "shared_classes": [row for pair in pairs for row in _shared(*pair)],
        "regression": [row for one in scope.central for row in _central(one, Measured(one.name, records))],
    }


def _learning(study: Study, measured: Measured) -> list[Row]:
    """Return accuracies over training, with and without a fixed layer, and at the end with more participants (Fig. 3)."""
    compared = frameworks(study.fixed, study.learned)
    found = [
        _accuracy(study, measured.part(LEARNING), name, defence, study.participants[0], rounds)
        for name, defence in compared.items()
        for rounds in study.looks
    ]
    for count in study.participants[1:]:
        own = [record for record in measured.part(PARTICIPANTS) if getattr(record.cell.scenario, "participants", None) == count]
        for name, defence in frameworks((study.dimensions,)).items():
            found.append(_accuracy(study, own, name, defence, count, study.rounds))
    return found


def _accuracy(study: Study, records: Sequence[Record], name: str, defence: Defence, participants: int, rounds: int) -> Row:
    plain = values(records, ACCURACY, Undefended(), UTILITY, rounds)
    own = values(records, ACCURACY, defence, UTILITY, rounds)
    return {
        "data_set": study.name,
        "participants": participants,
        "framework": name,
        "rounds": rounds,
        **over_seeds("accuracy", own.values(), share=True),
        **over_seeds("of_plain", ratios(own, plain)),
    }


def _experiments(study: Study, measured: Measured) -> list[Row]:
    """Return the plain framework, the exact key (I), random keys of all lengths (III), and those that are estimated from updates."""
    blind, seeing, told = (measured.part(part, study.seeds) for part in (GUESSED, KNOWN, TOLD))
    known = ClassKeys(dimensions=study.dimensions)
    found = [
        {**_of(study, PLAIN, None), **_scores(blind, Undefended(), RANDOM)},
        {**_of(study, f"I: {EXACT}", study.dimensions), **_scores(seeing, known, EXACT)},
    ]
    for dimensions in study.guessed:
        scores = _scores(blind, ClassKeys(dimensions=dimensions), RANDOM)
        found.append({**_of(study, f"III: {RANDOM}", dimensions), **scores})
    for dimensions in study.estimated:
        scores = _scores(told, ClassKeys(dimensions=dimensions), ESTIMATED)
        found.append({**_of(study, f"beyond: {ESTIMATED}", dimensions), **scores})
    return found


def _of(study: Study, experiment: str, dimensions: int | None) -> Row:
    return {"data_set": study.name, "experiment": experiment, "dimensions": dimensions or 0}


def _distances(study: Study, measured: Measured) -> list[Row]:
    """Return what a key at some distance from the victim's is worth (experiment II, Fig. 5); 0 is the key itself."""
    records, known = measured.part(KNOWN, study.seeds), ClassKeys(dimensions=study.dimensions)
    places = {EXACT: 0.0, **{distant(distance): distance for distance in study.distances}}
    return [
        {"data_set": study.name, "dimensions": study.dimensions, "distance": places[name], **_scores(records, known, name)}
        for name in guesses(study.attack, study.distances)
    ]


def _crowd(study: Study, measured: Measured) -> list[Row]:
    """Return what several attackers at once make of the plain framework, and of keys (Fig. 6); nothing where there are none."""
    if study.crowd == 2:
        return []
    records = measured.part(CROWD)
    return [
        {"data_set": study.name, "attackers": study.crowd - 1, "framework": name, **_scores(records, defence, RANDOM)}
        for name, defence in frameworks((study.dimensions,)).items()
    ]


def _others(study: Study, measured: Measured) -> list[Row]:
    """Return keys beside defences that were not made for this attack; who attacks them knows nothing of a key."""
    records = measured.part(GUESSED, study.seeds)
    compared: dict[str, Defence] = {PLAIN: Undefended(), keys(study.dimensions): ClassKeys(dimensions=study.dimensions)}
    compared |= others(study.noises, study.shares)
    return [
        {"data_set": study.name, "defence": name, **_scores(records, defence, RANDOM)} for name, defence in compared.items()
    ]


def _scores(records: Sequence[Record], defence: Defence, label: str) -> Row:
    """Return every score of an attack over seeds, the chance level of the first, and how good the attacked model is."""
    own = [record for record in records if (record.cell.defence, record.cell.label) == (defence, label)]
    row: Row = {}
    for name in SCORES:
        row |= over_seeds(name, values(own, name, defence, label).values(), share=name != DIVERSITY)
    row["chance"] = chance(own, SCORES[0])
    row |= over_seeds("accuracy", values(own, ACCURACY, defence, label).values(), share=True)
    return row


def _shared(study: Study, measured: Measured) -> list[Row]:
    """Return accuracies where participants share classes (section 5.4)."""
    records = measured.part(SHARED)
    return [
        _accuracy(study, records, name, defence, 2, study.rounds) for name, defence in frameworks((study.dimensions,)).items()
    ]


def _central(one: Central, measured: Measured) -> list[Row]:
    """Return the accuracy of both objectives, trained in one place (Table 1)."""
    records = measured.part(CENTRAL)
    objectives: dict[str, Defence] = {REGRESSION: ClassKeys(dimensions=one.dimensions), ENTROPY: Undefended()}
    return [
        {
            "data_set": one.name,
            "objective": name,
            **over_seeds("accuracy", values(records, ACCURACY, defence, UTILITY).values(), share=True),
            **over_seeds(
                "of_entropy",
                ratios(values(records, ACCURACY, defence, UTILITY), values(records, ACCURACY, objectives[ENTROPY], UTILITY)),
            ),
        }
        for name, defence in objectives.items()
    ]
