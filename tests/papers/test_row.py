from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from leaktight.core.metric import Reading
from leaktight.papers.row import (
    CLAIM,
    claims,
    columns,
    groups,
    interval_columns,
    number,
    over_runs,
    over_seeds,
    reading_of,
    rows_where,
    value_at,
)


def test_readings_are_read_from_rows() -> None:
    row = {"a": 1.0, "a_low": 0.5, "a_high": 2.0, "b": None, "c": 3}
    assert reading_of(row, "a") == Reading(name="a", value=1.0, low=0.5, high=2.0)
    assert reading_of(row, "b") is None
    assert reading_of(row, "c") == Reading(name="c", value=3.0)


def test_a_reading_becomes_three_columns() -> None:
    assert columns("a", Reading(name="a", value=1.0, low=0.5, high=2.0)) == {"a": 1.0, "a_low": 0.5, "a_high": 2.0}
    assert columns("a", None) == {"a": None, "a_low": None, "a_high": None}


def test_what_is_not_finite_is_left_out() -> None:
    assert interval_columns("a", math.inf, math.nan, 1.0) == {"a": None, "a_low": None, "a_high": 1.0}


def test_numbers_are_read_from_rows_and_nothing_else_is_taken_for_one() -> None:
    row = {"a": 1, "b": 0.5, "c": "text", "d": None, "e": True}
    assert [number(row, name) for name in "abcdef"] == [1.0, 0.5, None, None, None, None]


def test_rows_are_found_by_their_columns() -> None:
    rows = [{"a": 1, "b": "x"}, {"a": 2, "b": "x"}, {"a": 2, "b": "y"}]
    assert rows_where(rows, b="x", a=2) == [{"a": 2, "b": "x"}]
    assert rows_where(rows, missing=1) == []


def test_claims_keep_their_sources() -> None:
    assert claims(("It is so.", "Fig. 1")) == [{CLAIM: "It is so.", "source": "Fig. 1"}]


@pytest.mark.parametrize("lost", [math.nan, math.inf])
def test_a_seed_without_a_number_leaves_no_mean(lost: float) -> None:
    assert over_seeds("share", [lost, 0.5, 0.6], share=True) == {"share": None, "share_low": None, "share_high": None}


def test_a_value_is_that_of_the_first_row_or_none() -> None:
    rows = [{"a": 1, "b": 0.5}, {"a": 2, "b": None}, {"a": 1, "b": 0.7}]
    assert value_at(rows, "b", a=1) == Reading(name="b", value=0.5)
    assert value_at(rows, "b", a=2) is value_at(rows, "b", a=3) is None


def test_rows_that_agree_come_together_in_the_order_of_the_first() -> None:
    rows = [{"a": "x", "b": 1}, {"a": "y", "b": 2}, {"a": "x", "b": 3}]
    assert [(key, [row["b"] for row in own]) for key, own in groups(rows, "a")] == [(("x",), [1, 3]), (("y",), [2])]


def test_the_interval_over_seeds_is_students() -> None:
    values = [0.70, 0.74, 0.71, 0.69]
    low, high = stats.t.interval(0.95, df=3, loc=sum(values) / 4, scale=stats.sem(values))
    row = over_seeds("auc", values)
    assert [row["auc_low"], row["auc_high"]] == pytest.approx([low, high])


def test_one_seed_has_no_interval_and_what_is_not_finite_is_no_number() -> None:
    assert over_seeds("auc", [0.7]) == {"auc": 0.7, "auc_low": None, "auc_high": None}
    assert over_seeds("auc", [math.inf]) == {"auc": None, "auc_low": None, "auc_high": None}


@given(values=st.lists(st.floats(0, 1), min_size=1, max_size=5))
def test_the_mean_lies_within_its_interval(values: list[float]) -> None:
    row = over_seeds("auc", values)
    mean, low, high = (number(row, name) for name in ("auc", "auc_low", "auc_high"))
    assert mean is not None
    assert (low is None) == (len(values) < 2)
    if low is not None and high is not None:
        assert low <= mean <= high


def test_one_training_run_has_its_own_interval_and_several_have_that_over_them() -> None:
    one = Reading(name="psnr", value=7.0, low=6.5, high=7.5)
    assert over_runs("psnr", [one]) == {"psnr": 7.0, "psnr_low": 6.5, "psnr_high": 7.5}
    row = over_runs("psnr", [one, Reading(name="psnr", value=7.2)])
    # Student's t with one degree of freedom is 12.706; the error of the mean is 0.1.
    assert row["psnr_high"] == pytest.approx(7.1 + 1.2706, rel=1e-3)
    assert over_runs("psnr", []) == {"psnr": None, "psnr_low": None, "psnr_high": None}
