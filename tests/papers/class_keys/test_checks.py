from __future__ import annotations

import copy
from collections.abc import Callable

import pytest

from leaktight.papers import Check, Tables
from leaktight.papers.class_keys.checks import checks_of
from leaktight.papers.class_keys.settings import Scope
from leaktight.papers.class_keys.tables import tables_of
from leaktight.papers.paper import Records
from leaktight.papers.reproduction import rows_where


@pytest.fixture(scope="module")
def made(scope: Scope, answered: Callable[..., Records]) -> Tables:
    return tables_of(scope, answered(), seed=5)


@pytest.fixture
def tables(made: Tables) -> Tables:
    return copy.deepcopy(made)


def found(tables: Tables, start: str) -> Check:
    [check] = [check for check in checks_of(tables) if check.name.startswith(start)]
    return check


def test_each_claim_is_checked_once(tables: Tables) -> None:
    names = [check.name for check in checks_of(tables)]
    assert len(set(names)) == len(names) == 12
    assert all(check.holds for check in checks_of(tables))


@pytest.mark.parametrize(("words", "experiment"), [("plain framework", "plain"), ("exact key", "I: exact key")])
def test_the_attack_must_succeed_where_scores_are_known(tables: Tables, words: str, experiment: str) -> None:
    start = f"Samples recognised as the victim's class, {words}"
    row = rows_where(tables["experiments"], experiment=experiment)[0]
    row |= {"recognised": 0.6, "recognised_low": 0.5, "recognised_high": 0.7}
    assert (found(tables, start).holds, found(tables, start).undecided) == (True, True)
    row["recognised"] = 0.59
    assert not found(tables, start).holds


def test_random_keys_must_stop_it_from_4096_dimensions_on(tables: Tables) -> None:
    start = "Samples recognised as the victim's class, random key of 4,096"
    row = rows_where(tables["experiments"], experiment="III: random key", dimensions=4096)[0]
    for value, holds in ((0.1, True), (0.11, False)):
        row["recognised"] = value
        assert found(tables, start).holds is holds
    assert not [check for check in checks_of(tables) if "random key of 128" in check.name]


def test_the_curve_must_fall(tables: Tables) -> None:
    start = "The delta curve: recognised(0) - recognised(1.3)"
    assert found(tables, start).value == pytest.approx(0.83)
    tables["distances"][-1]["recognised"] = 0.96
    assert not found(tables, start).holds


def test_several_attackers_must_fail_too(tables: Tables) -> None:
    tables["several_attackers"][0]["recognised"] = 0.5
    assert not found(tables, "Samples recognised, 2 attackers").holds


def test_keys_must_keep_the_accuracy_with_and_without_shared_classes(tables: Tables) -> None:
    for start, rows in (
        ("Accuracy(keys of 4,096) / accuracy(plain), 2 participants", tables["learning"]),
        ("Accuracy(keys of 4,096) / accuracy(plain), 5 participants", tables["learning"]),
        ("Accuracy(keys of 4,096) / accuracy(plain), shared classes", tables["shared_classes"]),
    ):
        assert found(tables, start).holds
        count = int(start.split(", ")[-1].split()[0]) if "participants" in start else 2
        row = rows_where(rows, framework="keys of 4,096", rounds=120, participants=count)[0]
        row |= {"of_plain": 0.96, "of_plain_low": None, "of_plain_high": None}
        assert not found(tables, start).holds


def test_overlaps_must_be_as_theory_says(tables: Tables) -> None:
    start = "Share of dimensions"
    assert found(tables, start).value == 1
    for row in rows_where(tables["key_overlap"], distribution="normal")[:2]:
        row["largest"] = 2.0
    assert found(tables, start).value == pytest.approx(1 / 3)


def test_a_shared_class_must_lie_between_its_keys_and_away_from_others(tables: Tables) -> None:
    tables["shared_keys"][-1] |= {"mean_score": 0.6, "largest_other": 0.3}
    assert not found(tables, "Score of a class with each of its two keys").holds
    assert not found(tables, "Largest overlap of a shared class").holds


def test_regression_must_come_near_cross_entropy(tables: Tables) -> None:
    tables["regression"][0]["of_entropy"] = 0.5
    assert not found(tables, "Accuracy(keys) / accuracy(cross entropy)").holds


def test_gaps_never_hold(scope: Scope, answered: Callable[..., Records]) -> None:
    checks = checks_of(tables_of(scope, answered(lambda cell: True), seed=5))
    # What follows from keys alone needs no record.
    assert sum(check.holds for check in checks) == 3
    assert len(checks) == 12
