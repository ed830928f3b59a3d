from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from leaktight.defences.isotropic import IsotropicNoise
from leaktight.papers.paper import Records
from leaktight.papers.split_label_leakage.equal_leak import (
    ATTACKS,
    STRONGEST,
    Setting,
    at_equal_leak,
    equal_leak_rows,
    leaks,
)
from leaktight.papers.split_label_leakage.measured import Measured
from leaktight.papers.split_label_leakage.settings import Study

CURVE = [Setting(0.0, 1.0, 0.72), Setting(2.5, 0.8, 0.71), Setting(5.0, 0.6, 0.70), Setting(25.0, 0.52, 0.66)]


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


def test_the_strongest_attack_is_chosen_seed_by_seed(study: Study, answered: Callable[..., Records]) -> None:
    records = answered(lambda cell: cell.label == "clustering" and cell.seed == 5)
    measured = Measured.of(study, records)
    each = [leaks(measured, "none", attack) for attack in ATTACKS]
    assert [list(one) for one in each] == [[5, 6, 7], [5, 6, 7], [6, 7]]
    # The strongest of two attacks would be another number than that of three.
    assert leaks(measured, "none", STRONGEST) == each[2]


def test_a_curve_with_a_gap_is_not_compared_with(study: Study, answered: Callable[..., Records]) -> None:
    middle = IsotropicNoise(ratio=study.ratios[1])
    measured = Measured.of(study, answered(lambda cell: cell.defence == middle))
    for row in equal_leak_rows(measured):
        assert row["sumkl_test_auc"] is not None
        assert (row["isotropic_test_auc"], row["gain"]) == (None, None)
