from __future__ import annotations

import math

import pytest

from leaktight.defences.key_theory import largest_overlap
from leaktight.papers.class_keys.geometry import overlap_rows, shared_rows
from leaktight.papers.class_keys.settings import Scope
from leaktight.papers.reproduction import number, rows_where


def test_overlaps_fall_with_the_dimensions_for_both_distributions(scope: Scope) -> None:
    rows = overlap_rows(scope, seed=0)
    for distribution in ("normal", "uniform"):
        values = [number(row, "largest") or 0 for row in rows_where(rows, distribution=distribution)]
        assert values == sorted(values, reverse=True)
        assert values[0] == pytest.approx(1, abs=1e-4)
    assert [row["dimensions"] for row in rows[:3]] == [2, 64, 1024]


def test_intervals_are_those_of_all_dimensions_together(scope: Scope) -> None:
    pairs = scope.repeats * 4950
    for row in overlap_rows(scope, seed=0)[1:3]:
        low, middle, high = (number(row, name) or 0 for name in ("theory_low", "theory", "theory_high"))
        alone = [largest_overlap(int(number(row, "dimensions") or 0), pairs, level) for level in (0.025, 0.975)]
        # Three intervals that each fail in a twentieth of experiments would fail together in a seventh.
        assert low < alone[0] < middle < alone[1] < high


def test_they_follow_from_the_seed(scope: Scope) -> None:
    one, same, other = (overlap_rows(scope, seed)[1]["largest"] for seed in (0, 0, 1))
    assert one == same != other


def test_two_keys_of_a_class_have_a_score_of_about_seven_tenths(scope: Scope) -> None:
    short, long = shared_rows(scope, seed=0)
    assert long["mean_score"] == pytest.approx(math.sqrt(0.5), abs=0.02)
    assert (number(long, "largest_other") or 1) < (number(short, "largest_other") or 0)
    assert (number(long, "largest_score") or 0) >= (number(long, "mean_score") or 1)
