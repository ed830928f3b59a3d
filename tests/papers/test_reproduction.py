from __future__ import annotations

import json
import math

import pytest

from leaktight.core.errors import InvalidValue
from leaktight.core.metric import Reading
from leaktight.papers.estimate import Estimate
from leaktight.papers.reproduction import (
    CLAIM,
    Check,
    Reproduction,
    above,
    at_least,
    at_most,
    claims,
    columns,
    estimate,
    interval_columns,
    number,
    over_seeds,
    rows_where,
    within,
)


def made(**changes: object) -> Reproduction:
    whole = {"paper": "p", "scale": "smoke", "seed": 0, "seconds": 1.5, "tables": {}, "published": {}, "checks": ()}
    return Reproduction.model_validate({**whole, **changes})


def test_its_json_has_exactly_the_promised_keys() -> None:
    check = above("a claim", 1.0, least=0)
    done = made(tables={"t": [{"a": 1, "b": None, "c": "x", "d": 0.5}]}, checks=(check,))
    found = json.loads(done.model_dump_json())
    assert list(found) == ["paper", "scale", "seed", "seconds", "tables", "published", "checks", "remarks"]
    assert found["tables"] == {"t": [{"a": 1, "b": None, "c": "x", "d": 0.5}]}
    assert found["checks"] == [
        {"name": "a claim", "value": 1.0, "expected": "above 0", "holds": True, "low": None, "high": None, "undecided": False}
    ]
    assert Reproduction.model_validate(found) == done


def test_rows_are_flat() -> None:
    with pytest.raises(InvalidValue):
        made(tables={"t": [{"a": [1, 2]}]})


def test_a_scale_is_one_of_three() -> None:
    with pytest.raises(InvalidValue, match="The `scale` of Reproduction must be one of"):
        made(scale="large")


@pytest.mark.parametrize(
    ("check", "holds"),
    [
        (above("x", 0.1, 0), True),
        (above("x", 0.0, 0), False),
        (above("x", None, 0), False),
        (at_least("x", -0.01, -0.01), True),
        (at_most("x", 0.6, 0.6), True),
        (at_most("x", 0.61, 0.6), False),
        (at_most("x", None, 0.6), False),
        (at_least("x", -0.02, -0.01), False),
        (at_least("x", None, -0.01), False),
    ],
)
def test_a_check_holds_or_not_and_never_without_a_number(check: Check, holds: bool) -> None:
    assert check.holds is holds


@pytest.mark.parametrize(
    ("check", "holds", "undecided"),
    [
        (above("x", Estimate(value=0.1, low=0.05, high=0.2), 0), True, False),
        (above("x", Estimate(value=0.1, low=-0.05, high=0.2), 0), True, True),
        (above("x", Estimate(value=-0.1, low=-0.2, high=-0.05), 0), False, False),
        (above("x", Estimate(value=-0.1, low=-0.2, high=0.05), 0), False, True),
        (above("x", Estimate(value=0.1), 0), True, False),
        (at_least("x", Estimate(value=-0.005, low=-0.02, high=0.02), -0.01), True, True),
        (within("x", Estimate(value=0.0, low=-0.2, high=0.2), 0.1), True, True),
        (within("x", Estimate(value=0.0, low=-0.1, high=0.1), 0.1), True, False),
        (within("x", Estimate(value=-0.3, low=-0.4, high=-0.2), 0.1), False, False),
        (within("x", 0.2, 0.1), False, False),
        (within("x", None, 0.1), False, False),
    ],
)
def test_a_check_is_undecided_where_its_interval_has_both(check: Check, holds: bool, undecided: bool) -> None:
    assert (check.holds, check.undecided) == (holds, undecided)


def test_a_check_of_before_intervals_is_still_read() -> None:
    old = Check.model_validate({"name": "x", "value": 1.0, "expected": "above 0", "holds": True})
    assert (old.low, old.high, old.undecided) == (None, None, False)


def test_estimates_are_read_from_rows() -> None:
    row = {"a": 1.0, "a_low": 0.5, "a_high": 2.0, "b": None, "c": 3}
    assert estimate(row, "a") == Estimate(value=1.0, low=0.5, high=2.0)
    assert estimate(row, "b") is None
    assert estimate(row, "c") == Estimate(value=3.0)


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
