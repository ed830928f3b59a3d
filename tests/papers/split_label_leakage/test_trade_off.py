from __future__ import annotations

from collections.abc import Callable

import pytest

from leaktight.papers import Check, Tables
from leaktight.papers.row import number, rows_where


def test_two_hundredths_of_test_auc_may_be_lost(tables: Tables, find_check: Callable[..., Check]) -> None:
    start = "Test AUC(unprotected)"
    assert not find_check(start).holds
    row = rows_where(tables["trade_off"], defence="sumKL L=0.4")[0]
    row |= {"lost_auc": 0.02, "lost_auc_low": 0.01, "lost_auc_high": 0.02}
    assert (find_check(start).holds, find_check(start).undecided) == (True, False)
    row["lost_auc_high"] = 0.03
    assert (find_check(start).high, find_check(start).undecided) == (0.03, True)


def test_utility_is_a_mean_over_seeds_with_an_interval(tables: Tables) -> None:
    [row] = rows_where(tables["trade_off"], defence="sumKL L=0.4")
    assert number(row, "test_auc") == pytest.approx(0.75 - 0.04 + 0.006)
    low, high = number(row, "test_auc_low"), number(row, "test_auc_high")
    assert low is not None
    assert high is not None
    # Student's t with two degrees of freedom is 4.303; the deviation is 0.001.
    assert high - low == pytest.approx(2 * 4.3027 * 0.001 / 3**0.5, rel=1e-3)
    assert number(row, "lost_auc") == pytest.approx(0.04)
    assert number(row, "lost_auc_low") == pytest.approx(0.04)


def test_the_strongest_attack_is_the_one_that_finds_most(tables: Tables) -> None:
    [row] = rows_where(tables["trade_off"], defence="isotropic 5")
    assert number(row, "norm_q95") == pytest.approx(0.92)
    assert number(row, "strongest_q95") == number(row, "clustering_q95") == pytest.approx(0.97)
