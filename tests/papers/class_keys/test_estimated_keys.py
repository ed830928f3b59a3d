from __future__ import annotations

from collections.abc import Callable

import pytest

from leaktight.papers import Check, Tables


def test_estimates_must_be_no_nearer_than_chance(tables: Tables, find_check: Callable[..., Check]) -> None:
    [row] = tables["estimated_keys"]
    assert row["key_cosine"] == pytest.approx(0.02 + 0.006)
    assert row["key_cosine_chance"] == pytest.approx(0.04)
    start = "Cosine of estimated and nearest key - chance, 4,096"
    assert find_check(start).holds
    row |= {"key_cosine": 0.09, "key_cosine_low": 0.08, "key_cosine_high": 0.1}
    found = find_check(start)
    assert not found.holds
    assert not found.undecided
