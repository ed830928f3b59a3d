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
    assert len(set(names)) == len(names) == 20
    assert all(check.holds for check in checks_of(tables))


@pytest.mark.parametrize(("words", "experiment"), [("plain framework", "plain"), ("exact key", "I: exact key")])
def test_the_attack_must_succeed_where_scores_are_known(tables: Tables, words: str, experiment: str) -> None:
    start = f"Samples recognised as the victim's class, {words}"
    row = rows_where(tables["experiments"], experiment=experiment)[0]
    row |= {"recognised": 0.6, "recognised_low": 0.5, "recognised_high": 0.7}
    assert (found(tables, start).holds, found(tables, start).undecided) == (True, True)
    row["recognised"] = 0.59
    assert not found(tables, start).holds


@pytest.mark.parametrize(
    ("words", "column"), [("the victim's class", "recognised"), ("any class of the victim", "recognised_any")]
)
def test_random_keys_must_stop_it_from_4096_dimensions_on(tables: Tables, words: str, column: str) -> None:
    start = f"Samples recognised as {words}, random key of 4,096"
    row = rows_where(tables["experiments"], experiment="III: random key", dimensions=4096)[0]
    for value, holds in ((0.1, True), (0.11, False)):
        row[column] = value
        assert found(tables, start).holds is holds
    assert not [check for check in checks_of(tables) if "random key of 128" in check.name]


def test_the_curve_must_fall_from_the_key_itself(tables: Tables) -> None:
    start = "The delta curve: recognised(0) - recognised(1.3)"
    assert found(tables, start).value == pytest.approx(0.95)
    tables["distances"][-1]["recognised"] = 0.96
    assert not found(tables, start).holds


def test_it_must_fall_from_a_key_that_is_nearer_than_the_threshold_too(tables: Tables) -> None:
    assert not [check for check in checks_of(tables) if "recognised(0.5) -" in check.name]
    tables["distances"].insert(1, {**tables["distances"][0], "distance": 0.1, "recognised": 0.7})
    start = "The delta curve: recognised(0.1) - recognised(1.3)"
    assert found(tables, start).holds
    tables["distances"][1]["recognised"] = 0.0
    assert not found(tables, start).holds


def test_from_the_paper_s_threshold_on_nothing_may_be_recognised(tables: Tables) -> None:
    start = "Most samples recognised, key at 0.5 or farther"
    assert found(tables, start).value == pytest.approx(0.056)
    tables["distances"][1]["recognised"] = 0.2
    assert not found(tables, start).holds
    tables["distances"][1]["recognised"] = None
    assert found(tables, start).value is None


def test_on_faces_the_threshold_is_farther(tables: Tables) -> None:
    for rows in tables.values():
        for row in rows:
            if row.get("data_set") == "digits":
                row["data_set"] = "Olivetti Faces"
    assert found(tables, "Most samples recognised, key at 1.1 or farther").value == pytest.approx(0.006)
    assert found(tables, "The delta curve: recognised(0.5) - recognised(1.3)").holds


@pytest.mark.parametrize(
    ("words", "column"), [("the victim's class", "recognised"), ("any class of the victim", "recognised_any")]
)
def test_several_attackers_must_fail_too(tables: Tables, words: str, column: str) -> None:
    start = f"Samples recognised as {words}, 2 attackers with random keys"
    assert found(tables, start).holds
    rows_where(tables["several_attackers"], framework="keys of 4,096")[0][column] = 0.5
    assert not found(tables, start).holds


def test_several_attackers_must_succeed_on_the_plain_framework(tables: Tables) -> None:
    start = "Samples recognised as the victim's class, 2 attackers on the plain framework"
    assert found(tables, start).holds
    rows_where(tables["several_attackers"], framework="plain")[0]["recognised"] = 0.5
    assert not found(tables, start).holds


@pytest.mark.parametrize(
    ("framework", "participants"),
    [("keys of 128", 2), ("keys of 4,096", 2), ("keys of 128, learned layer", 2), ("keys of 4,096", 5)],
)
def test_keys_of_every_length_must_keep_the_accuracy(tables: Tables, framework: str, participants: int) -> None:
    start = f"Accuracy({framework}) / accuracy(plain), {participants} participants"
    assert found(tables, start).holds
    row = rows_where(tables["learning"], framework=framework, rounds=120, participants=participants)[0]
    row |= {"of_plain": 0.96, "of_plain_low": None, "of_plain_high": None}
    assert not found(tables, start).holds


def test_keys_must_keep_the_accuracy_where_classes_are_shared(tables: Tables) -> None:
    start = "Accuracy(keys of 4,096) / accuracy(plain), shared classes"
    assert found(tables, start).holds
    row = rows_where(tables["shared_classes"], framework="keys of 4,096")[0]
    row |= {"of_plain": 0.96, "of_plain_low": None, "of_plain_high": None}
    assert not found(tables, start).holds


def test_overlaps_must_be_as_theory_says(tables: Tables) -> None:
    start = "Share of dimensions"
    assert found(tables, start).value == 1
    assert found(tables, start).holds
    rows_where(tables["key_overlap"], distribution="normal")[1]["largest"] = 0.99
    assert found(tables, start).value == pytest.approx(2 / 3)
    assert not found(tables, start).holds


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
    assert len(checks) == 20


def test_the_farthest_key_is_not_compared_with_itself(tables: Tables) -> None:
    near = [row for row in tables["distances"] if row["distance"] == 0.0]
    tables["distances"] = [*near, {**near[0], "distance": 0.1, "recognised": 0.2}]
    names = [check.name for check in checks_of(tables) if "delta curve" in check.name]
    assert [name.partition(", ")[0] for name in names] == ["The delta curve: recognised(0) - recognised(0.1)"]
