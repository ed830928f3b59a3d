from __future__ import annotations

from collections.abc import Callable

import pytest

from leaktight.papers import Check, Tables
from leaktight.papers.row import rows_where


def test_lengths_stand_beside_the_usual_one(tables: Tables) -> None:
    assert [(row["bits"], row["ratio"]) for row in tables["bits"]] == [(64, 0.5), (128, 0.5)]


def test_error_and_ratio_must_grow_with_the_length(tables: Tables, find_check: Callable[..., Check]) -> None:
    assert find_check("rMSE(128 bits) - rMSE(64 bits)").value == pytest.approx(0.0)
    start = "Ratio(128 bits) / ratio(64 bits) - 1"
    assert (find_check(start).value, find_check(start).holds) == (0.0, False)
    rows_where(tables["bits"], bits=128)[0]["ratio"] = 0.55
    assert find_check(start).value == pytest.approx(0.1)
    assert find_check(start).holds
