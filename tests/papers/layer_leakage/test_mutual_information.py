from __future__ import annotations

from collections.abc import Callable

import pytest

from leaktight.papers import Check, Row, Tables
from leaktight.papers.row import number, rows_where


def test_information_must_fall_and_never_rise(tables: Tables, find_check: Callable[..., Check]) -> None:
    name = "Mutual information as a share, upper bound, LFW, glasses, FCNet"
    fall, rise = (f"{name}: {what}" for what in ("first layer - last layer", "largest rise from a layer to the next"))
    assert find_check(fall).value == pytest.approx(8 / 20)
    assert find_check(rise).value == pytest.approx(-1 / 20)
    [row] = rows_where(tables["mutual_information"], task="glasses", network="FCNet", layer=4)
    row["upper_share"] = 0.87
    assert find_check(rise).value == pytest.approx(0.02)
    assert not find_check(rise).holds
    [row] = rows_where(tables["mutual_information"], task="glasses", network="FCNet", layer=9)
    row["upper_share"] = 0.96
    assert not find_check(fall).holds


def test_information_has_both_bounds(only: Callable[..., Row]) -> None:
    row = only("mutual_information", task="gender", network="FCNet", layer=2)
    assert (number(row, "upper_share"), number(row, "lower_share")) == pytest.approx((0.9, 0.8))
