from __future__ import annotations

from collections.abc import Callable

import pytest

from leaktight.defences.key_theory import largest_overlap
from leaktight.papers import Check, Records, Tables
from leaktight.papers.class_keys import key_overlap
from leaktight.papers.class_keys.scales import Scope
from leaktight.papers.row import number, rows_where


def test_overlaps_must_be_as_theory_says(tables: Tables, find_check: Callable[..., Check]) -> None:
    start = "Share of dimensions"
    assert find_check(start).value == 1
    assert find_check(start).holds
    rows_where(tables["key_overlap"], distribution="normal")[1]["largest"] = 0.99
    assert find_check(start).value == pytest.approx(2 / 3)
    assert not find_check(start).holds


def test_overlaps_fall_with_the_dimensions_for_both_distributions(scope: Scope) -> None:
    rows = key_overlap.rows(scope, Records({}))
    for distribution in ("normal", "uniform"):
        values = [number(row, "largest") or 0 for row in rows_where(rows, distribution=distribution)]
        assert values == sorted(values, reverse=True)
        assert values[0] == pytest.approx(1, abs=1e-4)
    assert [row["dimensions"] for row in rows[:3]] == [2, 64, 1024]


def test_intervals_are_those_of_all_dimensions_together(scope: Scope) -> None:
    pairs = scope.repeats * 4950
    for row in key_overlap.rows(scope, Records({}))[1:3]:
        low, middle, high = (number(row, name) or 0 for name in ("theory_low", "theory", "theory_high"))
        alone = [largest_overlap(int(number(row, "dimensions") or 0), pairs, level) for level in (0.025, 0.975)]
        # Three intervals that each fail in a twentieth of experiments would fail together in a seventh.
        assert low < alone[0] < middle < alone[1] < high


def test_they_follow_from_the_seed(scope: Scope) -> None:
    one, same, other = (
        key_overlap.rows(scope.model_copy(update={"seed": seed}), Records({}))[1]["largest"] for seed in (0, 0, 1)
    )
    assert one == same != other
