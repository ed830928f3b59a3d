"""Tables: the paper's tables and figures in numbers, from the records of our audits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from leaktight.core.defence import Defence, Undefended
from leaktight.core.metric import Reading
from leaktight.core.record import Record
from leaktight.learning.federated import Federated
from leaktight.papers.layer_leakage.correlation import correlation_columns, of_columns
from leaktight.papers.reproduction import Row, Tables, columns, number
from leaktight.papers.transformation_search.measured import ACCURACY, Measured, Place
from leaktight.papers.transformation_search.plans import (
    ADAPTIVE,
    ATTACK,
    ATTACKS,
    CURVE,
    KNOWING,
    NETWORKS,
    POLICIES,
    SCORES,
    STAGES,
    TRAINING,
    TRANSFER,
    UNTRAINED,
    attack_on,
    compared,
    found_for,
    score_of,
)
from leaktight.papers.transformation_search.policies import (
    BASELINES,
    HYBRID,
    NONE,
    RANDOM,
    all_policies,
    as_defences,
    known_ones,
    published_parts,
    random_ones,
    transformed,
    undefended,
)
from leaktight.papers.transformation_search.settings import VARIANTS, Subject
from leaktight.transforms.library import LIBRARY, same_as
from leaktight.transforms.policy import Policy

SCORE = "privacy_score"
_PLAIN = Undefended()


def tables_of(measured: Measured) -> Tables:
    """Return every table but those of similarity and of Definition 2, which have files of their own."""
    points = _points(measured)
    return {
        "policies": [row for one in measured.study.subjects for row in _policies(measured, one)],
        "attacks": _attacks(measured),
        "defences": [row for one in measured.study.subjects for row in _defences(measured, one)],
        "transfer": [row for one in measured.study.transfers for row in _transfer(measured, one)],
        "points": points,
        "correlation": _correlations(measured, points),
        "training": _training(measured),
        "functions": _functions(measured),
        "adaptive": _adaptive(measured),
        "networks": _networks(measured),
    }


def where(subject: Subject) -> Row:
    """Return the columns that name a subject."""
    return {"data_set": subject.data_set, "network": subject.network}


def groups(measured: Measured, subject: Subject) -> dict[str, tuple[Policy | None, list[Defence]]]:
    """Return the rows of Table 1 by name: the policy, if it is one, and as defences; random ones are a row together."""
    study = measured.study
    policies = all_policies(study, found_for(subject, measured.found), measured.seed)
    drawn = random_ones(study, measured.seed)
    rows: dict[str, tuple[Policy | None, list[Defence]]] = {
        NONE: (None, [undefended(study)]),
        RANDOM: (None, [transformed(study, one) for one in drawn.values()]),
    }
    return rows | {name: (one, [transformed(study, one)]) for name, one in policies.items() if name not in drawn}


def _policies(measured: Measured, subject: Subject) -> list[Row]:
    """Return PSNR and accuracy with no, random, searched and published policies, and their scores (Table 1)."""
    place = Place(subject, POLICIES)
    return [
        {
            **where(subject),
            "policy": name,
            "functions": "" if policy is None else str(policy),
            **measured.attacked(place, defences),
            **measured.learned(place, defences),
            SCORE: _score(measured, subject, name, policy),
            "accuracy_score": _accuracy_score(measured, subject, name, policy),
        }
        for name, (policy, defences) in groups(measured, subject).items()
    ]


def _score(measured: Measured, subject: Subject, name: str, policy: Policy | None) -> float | None:
    """Return the privacy score of a policy on the semi-trained model, the mean of random ones; None where nobody asked."""
    policies = _scored(measured, name, policy)
    place = [Place(subject, SCORES, score_of(one), STAGES["semi-trained"]) for one in policies]
    return _mean([measured.reading(one, _PLAIN, SCORE) for one in place])


def _accuracy_score(measured: Measured, subject: Subject, name: str, policy: Policy | None) -> float | None:
    policies = _scored(measured, name, policy)
    place = [Place(subject, UNTRAINED, score_of(one), "initial") for one in policies]
    return _mean([measured.reading(one, _PLAIN, "accuracy_score") for one in place])


def _scored(measured: Measured, name: str, policy: Policy | None) -> list[Policy | None]:
    return list(random_ones(measured.study, measured.seed).values()) if name == RANDOM else [policy]


def _mean(readings: Sequence[Reading | None]) -> float | None:
    known = [one.value for one in readings if one is not None]
    return sum(known) / len(known) if known and len(known) == len(readings) else None


def _defences(measured: Measured, subject: Subject) -> list[Row]:
    """Return PSNR and accuracy with the paper's other defences, beside none, random policies and the hybrid (Table 3)."""
    place = Place(subject, POLICIES)
    own = groups(measured, subject)
    rows: Mapping[str, list[Defence]] = {
        NONE: own[NONE][1],
        **{name: [defence] for name, defence in BASELINES.items()},
        RANDOM: own[RANDOM][1],
        HYBRID: own[HYBRID][1],
    }
    return [
        {**where(subject), "defence": name, **measured.attacked(place, defences), **measured.learned(place, defences)}
        for name, defences in rows.items()
    ]


def _transfer(measured: Measured, subject: Subject) -> list[Row]:
    """Return PSNR and accuracy with the policies of another data set (Table 4)."""
    place = Place(subject, TRANSFER)
    return [
        {
            **where(subject),
            "policy": name,
            "functions": "" if policy is None else str(policy),
            **measured.attacked(place, defences),
            **measured.learned(place, defences),
        }
        for name, (policy, defences) in groups(measured, subject).items()
    ]


def beside(measured: Measured) -> dict[str, Defence]:
    """Return what six attacks and accuracy during training are compared on: none, one random policy, and the hybrid."""
    study = measured.study
    drawn = list(random_ones(study, measured.seed).values())[:1]
    policies = {RANDOM: drawn[0], HYBRID: found_for(study.focus, measured.found)}
    return as_defences(study, policies)


def _attacks(measured: Measured) -> list[Row]:
    """Return the PSNR of six attacks (Table 2)."""
    focus = measured.study.focus
    return [
        {**where(focus), "attack": attack, "policy": name, **measured.attacked(Place(focus, ATTACKS, attack), [defence])}
        for attack in VARIANTS
        for name, defence in beside(measured).items()
    ]


def _adaptive(measured: Measured) -> list[Row]:
    """Return what who knows the policy finds beside who does not: PSNR against the original is what counts here."""
    study = measured.study
    policies = known_ones(study, found_for(study.focus, measured.found))
    return [
        {
            **where(study.focus),
            "policy": name,
            "attack": attack,
            **measured.attacked(Place(study.focus, ADAPTIVE, attack), [one]),
        }
        for name, one in as_defences(study, policies).items()
        for attack in (ATTACK, KNOWING)
    ]


def _networks(measured: Measured) -> list[Row]:
    """Return the PSNR of an attack under the published policies, on another network (ours): how far that is what a failed attack has."""
    other = measured.study.other
    if other is None:
        return []
    rows: list[Row] = []
    for policy in (None, *published_parts()):
        used, raw = (
            measured.reading(Place(other, NETWORKS, attack_on(policy), "end"), _PLAIN, "psnr", against)
            for against in ("used", "raw")
        )
        named: Row = {**where(other), "policy": NONE if policy is None else str(policy)}
        chance: Row = {"chance": None if used is None else used.chance}
        rows.append({**named, **columns("psnr", used), **columns("psnr_original", raw), **chance})
    return rows


def _points(measured: Measured) -> list[Row]:
    """Return the score and the PSNR of each random policy, on the untrained, the semi-trained and the trained model (Fig. 2)."""
    focus = measured.study.focus
    rows: list[Row] = []
    for policy in (None, *compared(measured.study, measured.seed)):
        row: Row = {**where(focus), "policy": NONE if policy is None else str(policy)}
        for model, stage in STAGES.items():
            end = _ending(model)
            score = measured.reading(Place(focus, SCORES, score_of(policy), stage), _PLAIN, SCORE)
            row |= columns(f"{SCORE}{end}", score)
            for name, against in (("psnr", "used"), ("psnr_original", "raw")):
                place = Place(focus, SCORES, attack_on(policy), stage)
                row |= columns(f"{name}{end}", measured.reading(place, _PLAIN, "psnr", against))
        rows.append(row)
    return rows


def _correlations(measured: Measured, points: Sequence[Row]) -> list[Row]:
    """Return the correlation of score and PSNR over random policies: scored on one model, attacked on another (Fig. 2)."""
    policies = [row for row in points if row["policy"] != NONE]
    return [
        {
            **where(measured.study.focus),
            "scored": scored,
            "attacked": attacked,
            "against": against,
            **correlation_columns(of_columns(policies, f"{SCORE}{_ending(scored)}", f"{column}{_ending(attacked)}")),
        }
        for against, column in (("transformed", "psnr"), ("original", "psnr_original"))
        for scored in STAGES
        for attacked in STAGES
    ]


def _ending(model: str) -> str:
    return "" if model == "semi-trained" else f"_{model}"


def _training(measured: Measured) -> list[Row]:
    """Return the accuracy at some moments of the training and at its end (Fig. 3)."""
    focus = measured.study.focus
    place = Place(focus, TRAINING, CURVE, "training")
    rows: list[Row] = []
    for name, defence in beside(measured).items():
        for record in measured.done(place, defence).values():
            for played in _moments(record):
                found = (record.reading(f"{kind}_after_{played}") for kind in (ACCURACY, "own_accuracy"))
                rows.append(_moment(focus, name, played, *found))
            rounds = cast("Federated", record.cell.scenario).rounds
            rows.append(_moment(focus, name, rounds, record.reading(ACCURACY), None))
    return rows


def _moments(record: Record) -> list[int]:
    start = f"{ACCURACY}_after_"
    return sorted(int(one.name.removeprefix(start)) for one in record.readings if one.name.startswith(start))


def _moment(subject: Subject, name: str, played: int, public: Reading | None, own: Reading | None) -> Row:
    named: Row = {**where(subject), "policy": name, "rounds": played}
    return {**named, **columns(ACCURACY, public), **columns("own_accuracy", own)}


def _functions(measured: Measured) -> list[Row]:
    """Return the privacy score of each of the 50 functions alone, and its rank from the lowest (Fig. 5)."""
    focus = measured.study.focus
    rows: list[Row] = []
    for function in LIBRARY:
        policy = Policy(branches=((same_as(function.index),),))
        place = Place(focus, SCORES, score_of(policy), STAGES["semi-trained"])
        rows.append(
            {
                **where(focus),
                "function": function.index,
                "operation": function.operation,
                "level": function.level,
                **columns(SCORE, measured.reading(place, _PLAIN, SCORE)),
            }
        )
    # Indices that do the same have one score, and share the rank of the first.
    distinct = sorted({found for row in rows if (found := number(row, SCORE)) is not None})
    ranks = {score: rank for rank, score in enumerate(distinct, start=1)}
    return [{**row, "rank": ranks.get(cast("float", row[SCORE]))} for row in rows]
