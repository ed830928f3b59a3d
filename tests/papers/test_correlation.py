from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from leaktight.papers.correlation import correlation_columns, of_columns, pearson
from leaktight.papers.layer_leakage.correlation import TABLE_1

values = st.lists(st.floats(-10, 10), min_size=4, max_size=20)


@given(ones=values, seed=st.integers(0, 99))
def test_it_is_the_slope_of_standardised_values(ones: list[float], seed: int) -> None:
    others = np.random.default_rng(seed).normal(size=len(ones))
    found = pearson(ones, list(others))
    if np.ptp(ones) <= 1e-6:
        return
    assert found is not None
    assert found.r == pytest.approx(np.corrcoef(ones, others)[0, 1], abs=1e-6)
    assert -1 <= found.low <= found.r <= found.high <= 1


def test_t_and_p_are_those_of_a_regression() -> None:
    ones, others = [0.1, 0.4, 0.2, 0.9, 0.5], [0.2, 0.3, 0.35, 0.8, 0.4]
    found, line = pearson(ones, others), stats.linregress(ones, others)
    assert found is not None
    assert found.t == pytest.approx(line.slope / line.stderr)
    assert found.p == pytest.approx(line.pvalue)
    # Fisher: artanh R has a deviation of 1 / sqrt(n - 3).
    assert math.atanh(found.high) - math.atanh(found.r) == pytest.approx(1.959964 / math.sqrt(2), rel=1e-4)


@pytest.mark.parametrize(("network", "layers"), [("AlexNet", 5), ("VGG11Net", 11), ("FCNet", 9), ("All", 25)])
def test_the_published_t_follows_from_r_over_layers_and_three_data_sets(network: str, layers: int) -> None:
    for t, r, _ in TABLE_1[network].values():
        assert r * math.sqrt((3 * layers - 2) / (1 - r * r)) == pytest.approx(t, rel=0.01)


def test_a_straight_line_has_no_finite_t() -> None:
    found = pearson([1.0, 2.0, 4.0], [-1.0, -2.0, -4.0])
    assert found is not None
    assert (found.r, found.t) == (pytest.approx(-1), -math.inf)
    assert found.low == found.r == found.high
    row = correlation_columns(found)
    assert (row["t"], row["n"]) == (None, 3)
    assert row["p"] == pytest.approx(0, abs=1e-6)


def test_what_does_not_vary_or_is_too_little_has_none() -> None:
    assert pearson([1.0, 2.0], [1.0, 2.0]) is None
    assert pearson([0.7, 0.7, 0.7], [1.0, 2.0, 3.0]) is None
    assert pearson([1.0, 2.0, 3.0], [0.0, 0.0, 0.0]) is None


def test_rows_with_a_gap_are_left_out_and_the_rest_are_counted() -> None:
    rows = [{"a": float(at), "b": float(at**2)} for at in range(4)]
    whole = of_columns(rows, "a", "b")
    assert whole is not None
    assert whole.n == 4
    fewer = of_columns([*rows, {"a": 9.0, "b": None}, {"a": None, "b": 1.0}], "a", "b")
    assert fewer == whole
    assert of_columns([{"a": None, "b": 1.0}], "a", "b") is None


def test_columns_carry_the_name_of_the_coefficient() -> None:
    found = pearson([1.0, 2.0, 3.0, 4.0], [1.0, 3.0, 2.0, 4.0])
    assert list(correlation_columns(found, "r_other")) == ["r_other", "r_other_low", "r_other_high", "t", "p", "n"]
