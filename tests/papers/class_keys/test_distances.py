from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from leaktight.attacks import GanAttack
from leaktight.defences import ClassKeys
from leaktight.papers import Check, Records, Tables
from leaktight.papers.class_keys import PAPER
from leaktight.papers.paper import Plans
from leaktight.papers.row import number, rows_where


def test_the_curve_must_fall_from_the_key_itself(tables: Tables, find_check: Callable[..., Check]) -> None:
    start = "The delta curve: recognised(0) - recognised(1.3)"
    assert find_check(start).value == pytest.approx(0.95)
    tables["distances"][-1]["recognised"] = 0.96
    assert not find_check(start).holds


def test_it_must_fall_from_a_key_that_is_nearer_than_the_threshold_too(
    tables: Tables, find_check: Callable[..., Check]
) -> None:
    assert not [check for check in PAPER.checks(tables) if "recognised(0.5) -" in check.name]
    tables["distances"].insert(1, {**tables["distances"][0], "distance": 0.1, "recognised": 0.7})
    start = "The delta curve: recognised(0.1) - recognised(1.3)"
    assert find_check(start).holds
    tables["distances"][1]["recognised"] = 0.0
    assert not find_check(start).holds


def test_from_the_paper_s_threshold_on_nothing_may_be_recognised(
    tables: Tables, find_check: Callable[..., Check]
) -> None:
    start = "Most samples recognised, key at 0.5 or farther"
    assert find_check(start).value == pytest.approx(0.056)
    tables["distances"][1]["recognised"] = 0.2
    assert not find_check(start).holds
    tables["distances"][1]["recognised"] = None
    assert find_check(start).value is None


def test_on_faces_the_threshold_is_farther(tables: Tables, find_check: Callable[..., Check]) -> None:
    for rows in tables.values():
        for row in rows:
            if row.get("data_set") == "digits":
                row["data_set"] = "Olivetti Faces"
    assert find_check("Most samples recognised, key at 1.1 or farther").value == pytest.approx(0.006)
    assert find_check("The delta curve: recognised(0.5) - recognised(1.3)").holds


def test_the_farthest_key_is_not_compared_with_itself(tables: Tables) -> None:
    near = [row for row in tables["distances"] if row["distance"] == 0.0]
    tables["distances"] = [*near, {**near[0], "distance": 0.1, "recognised": 0.2}]
    names = [check.name for check in PAPER.checks(tables) if "delta curve" in check.name]
    assert [name.partition(", ")[0] for name in names] == ["The delta curve: recognised(0) - recognised(0.1)"]


def test_who_knows_of_a_key_meets_keys_alone(plans: Plans, attacks: Callable[..., dict[str, GanAttack]]) -> None:
    plan = plans["digits-known-0"]
    measured = [cell for cell in plan.cells() if cell.purpose == "measure"]
    assert {cell.defence for cell in measured} == {ClassKeys(dimensions=4096)}
    assert not any(cell.purpose == "null" for cell in plan.cells())
    found = attacks(plans, "digits-known-0")
    assert [(each.class_key, each.distance) for each in found.values()][1:] == [("distance", 0.5), ("distance", 1.3)]
    assert found["exact key"].class_key == "exact"


def test_the_curve_begins_with_the_key_itself(tables: Tables) -> None:
    found = [(row["distance"], number(row, "recognised")) for row in tables["distances"]]
    assert found == [(0.0, pytest.approx(0.956)), (0.5, pytest.approx(0.056)), (1.3, pytest.approx(0.006))]


def test_failures_are_gaps(answered: Callable[..., Records], setup: Any) -> None:
    found = PAPER.tables(setup, answered(lambda cell: cell.label == "exact key"))
    [row] = rows_where(found["experiments"], experiment="I: exact key")
    assert row["recognised"] is None
    assert found["distances"][0]["recognised"] is None
    assert found["distances"][1]["recognised"] is not None
