from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leaktight.defences.isotropic import IsotropicNoise
from leaktight.papers import Check, Records, Row, Tables
from leaktight.papers.row import number, rows_where
from leaktight.papers.split_label_leakage import equal_leak
from leaktight.papers.split_label_leakage.equal_leak import Setting, at_equal_leak
from leaktight.papers.split_label_leakage.scales import Study

CURVE = [Setting(0.0, 1.0, 0.72), Setting(2.5, 0.8, 0.71), Setting(5.0, 0.6, 0.70), Setting(25.0, 0.52, 0.66)]
leak = st.floats(0, 1)


def test_the_gain_must_be_positive_by_the_norm_and_by_the_strongest_attack(
    tables: Tables, find_check: Callable[..., Check]
) -> None:
    by_norm, by_strongest = (
        f"Test AUC(sumKL L=0.4) - Test AUC(isotropic) at the {one}" for one in ("gradient norm", "strongest")
    )
    rows_where(tables["equal_leak"], attack="gradient norm")[0]["gain"] = -0.001
    rows_where(tables["equal_leak"], attack="strongest of these")[0]["gain"] = 0.001
    assert not find_check(by_norm).holds
    assert find_check(by_strongest).holds
    rows_where(tables["equal_leak"], attack="strongest of these")[0] |= {"gain_low": -0.002, "gain_high": 0.004}
    check = find_check(by_strongest)
    assert (check.low, check.high, check.undecided) == (-0.002, 0.004, True)


@pytest.mark.parametrize("leak", [1.0, 0.95, 0.8, 0.61, 0.6, 0.55, 0.52])
def test_between_settings_it_is_the_straight_line(leak: float) -> None:
    rising = CURVE[::-1]
    found = at_equal_leak(CURVE, leak)
    for name in ("ratio", "utility"):
        expected = np.interp(leak, [one.leak for one in rising], [getattr(one, name) for one in rising])
        assert getattr(found, name) == pytest.approx(expected)
    assert found.leak == pytest.approx(leak)


def test_what_leaks_more_than_no_noise_is_compared_with_no_noise() -> None:
    assert at_equal_leak(CURVE, 1.5) == CURVE[0]


def test_what_leaks_less_than_any_noise_is_compared_with_that_which_leaks_least() -> None:
    bent = [*CURVE, Setting(50.0, 0.53, 0.60)]
    assert at_equal_leak(bent, 0.5) == CURVE[-1]


def test_of_several_crossings_the_cheapest_counts() -> None:
    bent = [Setting(0.0, 1.0, 0.8), Setting(1.0, 0.5, 0.7), Setting(2.0, 0.6, 0.6), Setting(3.0, 0.4, 0.5)]
    assert at_equal_leak(bent, 0.55).utility == pytest.approx(0.71)


def test_a_curve_with_a_gap_is_not_compared_with(study: Study, answered: Callable[..., Records]) -> None:
    middle = IsotropicNoise(ratio=study.ratios[1])
    records = answered(lambda cell: cell.defence == middle)
    for row in equal_leak.rows([study], records):
        assert row["sumkl_test_auc"] is not None
        assert (row["isotropic_test_auc"], row["gain"]) == (None, None)


def test_isotropic_noise_is_compared_where_it_leaks_as_much(only: Callable[..., Row]) -> None:
    # Both leak by strength alone, so that the same leakage is at ratio 0.8 * 25, and costs the same.
    for attack in ("gradient norm", "direction", "clustering", "strongest of these"):
        assert number(only("equal_leak", attack=attack), "isotropic_ratio") == pytest.approx(20)
        assert number(only("equal_leak", attack=attack), "gain") == pytest.approx(0, abs=1e-12)


@given(leaks=st.lists(leak, min_size=1, max_size=6), wanted=leak)
def test_equal_leakage_never_leaves_the_curve(leaks: list[float], wanted: float) -> None:
    curve = [Setting(float(at), value, 1 - at / 10) for at, value in enumerate(leaks)]
    found = at_equal_leak(curve, wanted)
    assert 0 <= found.ratio <= len(curve) - 1
    assert curve[-1].utility - 1e-9 <= found.utility <= 1
    if min(leaks) <= wanted:
        assert found.leak <= wanted
    else:
        assert found.leak == min(leaks)
