"""Checks: what the paper claims, on our numbers; and the premise of it all, that the attack works where there is no defence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from leaktight.papers.estimate import Estimate, difference, mean_of
from leaktight.papers.reproduction import (
    Check,
    Row,
    Tables,
    above,
    at_least,
    at_most,
    estimate,
    number,
    rows_where,
    within,
)
from leaktight.papers.transformation_search.plans import ATTACK
from leaktight.papers.transformation_search.policies import BASELINES, FIRST, HYBRID, NONE, RANDOM, SECOND
from leaktight.papers.transformation_search.published import LOWEST
from leaktight.papers.transformation_search.settings import FASHION, VARIANTS

DROP, MODERATE, EQUAL, SAME = 2.0, 0.5, 0.02, 0.1
"""The least published drop of PSNR in dB; a correlation that is moderate; accuracies that count as equal, and similarities."""
LOST = {FASHION: 0.03}
"""How much accuracy the hybrid costs at most in Table 1; on other sets a hundredth counts as nothing."""
TRANSFERRED = 0.07
"""How much it costs at most in Table 4."""
COMMON = 3
"""How many of the five lowest functions must be the paper's."""
_PLACE = ("data_set", "network")


def checks_of(tables: Tables) -> list[Check]:
    """Return every claim that these tables can answer."""
    return [
        *_policies(tables["policies"]),
        *_attacks(tables["attacks"]),
        *_defences(tables["defences"]),
        *_transfer(tables["transfer"]),
        *_correlation(tables["correlation"]),
        *_training(tables["training"]),
        *_functions(tables["functions"]),
        *_similarity(tables["similarity"]),
        *_adaptive(tables["adaptive"]),
        *_networks(tables["networks"]),
    ]


def _policies(rows: Sequence[Row]) -> list[Check]:
    """Ask what the hybrid does to PSNR and accuracy, beside random policies and the two that it is made of."""
    found = []
    for place, own in _places(rows):
        accuracy = {str(row["policy"]): estimate(row, "accuracy") for row in own}
        parts = mean_of([accuracy.get(FIRST), accuracy.get(SECOND)])
        most = LOST.get(str(own[0]["data_set"]), 0.01)
        found += [
            above(f"PSNR(none) - its chance level in dB: the attack works, {place}", _gain(own), 0),
            at_least(f"PSNR(none) - PSNR(hybrid) in dB, {place}", _value(own, HYBRID, "psnr_drop"), DROP),
            at_least(f"Accuracy(hybrid) - accuracy(none), {place}", _value(own, HYBRID, "accuracy_change"), -most),
            _below_random(own, place),
            above(f"Accuracy(hybrid) - mean accuracy of its two policies, {place}", difference(accuracy.get(HYBRID), parts), 0),
        ]
    return found


def _below_random(own: Sequence[Row], place: str) -> Check:
    gap = difference(_value(own, RANDOM, "psnr"), _value(own, HYBRID, "psnr"))
    return above(f"PSNR(random) - PSNR(hybrid) in dB, {place}", gap, 0)


def _attacks(rows: Sequence[Row]) -> list[Check]:
    """Ask whether the hybrid lowers PSNR under each attack."""
    return [
        above(
            f"PSNR(none) - PSNR(hybrid) in dB by {attack}, {place}",
            _value(rows_where(own, attack=attack), HYBRID, "psnr_drop"),
            0,
        )
        for place, own in _places(rows)
        for attack in VARIANTS
    ]


def _defences(rows: Sequence[Row]) -> list[Check]:
    """Compare the hybrid with the other defences that keep as much accuracy, and with the most accurate one."""
    found = []
    for place, own in _places(rows):
        by_name = {str(row["defence"]): row for row in own}
        hybrid = by_name[HYBRID]
        accuracy = number(hybrid, "accuracy")
        others = [by_name[name] for name in BASELINES]
        known = [number(row, "accuracy") for row in others]
        equal = [
            row
            for row, value in zip(others, known, strict=True)
            if value is not None and accuracy is not None and value >= accuracy - EQUAL
        ]
        best = _least([estimate(row, "psnr") for row in equal])
        most = _most([estimate(row, "accuracy") for row in others])
        found.append(
            above(
                f"PSNR(lowest of the other defences that are as accurate) - PSNR(hybrid) in dB, {place}",
                difference(best, estimate(hybrid, "psnr")),
                0,
            )
        )
        found.append(
            at_least(
                f"Accuracy(hybrid) - accuracy(most accurate other defence), {place}",
                difference(estimate(hybrid, "accuracy"), most),
                -EQUAL,
            )
        )
    return found


def _transfer(rows: Sequence[Row]) -> list[Check]:
    """Ask whether the hybrid of another data set still hides images, more than random policies, at a bounded loss."""
    found = []
    for place, own in _places(rows):
        found += [
            above(f"Transfer: PSNR(none) - PSNR(hybrid) in dB, {place}", _value(own, HYBRID, "psnr_drop"), 0),
            at_least(
                f"Transfer: accuracy(hybrid) - accuracy(none), {place}", _value(own, HYBRID, "accuracy_change"), -TRANSFERRED
            ),
            _below_random(own, f"transfer, {place}"),
        ]
    return found


def _correlation(rows: Sequence[Row]) -> list[Check]:
    """Ask whether the score on the semi-trained model tells of the attack, on either model."""
    return [
        at_least(
            f"R(privacy score, PSNR) over policies, attacks on the {row['attacked']} model, {_at(row)}",
            estimate(row, "r"),
            MODERATE,
        )
        for row in rows_where(rows, scored="semi-trained", against="transformed")
        # The paper attacks trained models; what came of the untrained one is in the table.
        if row["attacked"] != "untrained"
    ]


def _training(rows: Sequence[Row]) -> list[Check]:
    """Compare accuracies at the same moments of a training."""
    found = []
    for place, own in _places(rows):
        hybrid = {row["rounds"]: estimate(row, "accuracy") for row in rows_where(own, policy=HYBRID)}
        plain = {row["rounds"]: estimate(row, "accuracy") for row in rows_where(own, policy=NONE)}
        gaps = [difference(plain[at], hybrid[at]) for at in plain if at in hybrid and at]
        found.append(
            at_most(f"Accuracy(none) - accuracy(hybrid), mean over moments of the training, {place}", mean_of(gaps), EQUAL)
        )
    return found


def _functions(rows: Sequence[Row]) -> list[Check]:
    """Count the paper's five lowest functions among ours."""
    found = []
    for place, own in _places(rows):
        ranked = [row for row in own if number(row, "rank") is not None]
        lowest = {row["function"] for row in ranked if (number(row, "rank") or 0) <= len(LOWEST)}
        count = float(len(lowest & set(LOWEST))) if ranked else None
        found.append(at_least(f"How many of the five lowest functions are the paper's, {place}", count, COMMON))
    return found


def _similarity(rows: Sequence[Row]) -> list[Check]:
    """Compare the first and the last layer at the end of the attack."""
    found = []
    for place, own in _places(rows):
        last = max((number(row, "iterations") or 0 for row in own), default=0)
        ended = [row for row in own if number(row, "iterations") == last]
        deepest = max((number(row, "layer") or 0 for row in own), default=0)
        gaps = [
            difference(*(_value(rows_where(ended, layer=layer), name, "similarity") for name in (NONE, HYBRID)))
            for layer in (1, deepest)
        ]
        found += [
            above(f"Similarity(none) - similarity(hybrid), first layer, {place}", gaps[0], 0),
            within(f"Similarity(none) - similarity(hybrid), last layer, {place}", gaps[1], SAME),
        ]
    return found


def _adaptive(rows: Sequence[Row]) -> list[Check]:
    """Ask what is left of the hybrid where the attacker knows it: the best of all attackers, against the original image."""
    found = []
    for place, own in _places(rows):
        plain = _value(rows_where(own, attack=ATTACK), NONE, "psnr_original")
        best = _most([estimate(row, "psnr_original") for row in rows_where(own, policy=HYBRID)])
        name = f"PSNR of the original(none) - PSNR of the original(hybrid, best of two attackers) in dB, {place}"
        found.append(at_least(name, difference(plain, best), DROP))
    return found


def _networks(rows: Sequence[Row]) -> list[Check]:
    """Ask whether the attack on the other network works at all."""
    return [
        above(f"PSNR(none) - its chance level in dB: the attack works, {place}, published policies", _gain(own), 0)
        for place, own in _places(rows)
    ]


def _gain(rows: Sequence[Row]) -> Estimate | None:
    """Return by how much PSNR without a policy is above the best answer that needs no gradient."""
    found, chance = _value(rows, NONE, "psnr"), _value(rows, NONE, "chance")
    # A chance level is taken as exact.
    return difference(found, chance and Estimate(value=chance.value, low=chance.value, high=chance.value))


def _places(rows: Sequence[Row]) -> Iterable[tuple[str, list[Row]]]:
    """Give the rows of each data set and network together."""
    for place in dict.fromkeys(map(_at, rows)):
        yield place, [row for row in rows if _at(row) == place]


def _at(row: Row) -> str:
    return ", ".join(str(row[key]) for key in _PLACE)


def _value(rows: Sequence[Row], policy: str, column: str) -> Estimate | None:
    found = rows_where(rows, policy=policy)
    return estimate(found[0], column) if found else None


def _least(estimates: Sequence[Estimate | None]) -> Estimate | None:
    known = [one for one in estimates if one is not None]
    return min(known, key=lambda one: one.value) if known and len(known) == len(estimates) else None


def _most(estimates: Sequence[Estimate | None]) -> Estimate | None:
    known = [one for one in estimates if one is not None]
    return max(known, key=lambda one: one.value) if known and len(known) == len(estimates) else None
