from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leaktight.defences.isotropic import IsotropicNoise
from leaktight.papers import Check, Records, Row, Tables
from leaktight.papers.row import number
from leaktight.papers.split_label_leakage import PAPER, equal_leak
from leaktight.papers.split_label_leakage.audits import is_whole
from leaktight.papers.split_label_leakage.equal_leak import Setting, at_equal_leak, at_equal_utility
from leaktight.papers.split_label_leakage.scales import Study

CURVE = [Setting(0.0, 1.0, 0.72), Setting(2.5, 0.8, 0.71), Setting(5.0, 0.6, 0.70), Setting(25.0, 0.52, 0.66)]
leak = st.floats(0, 1)


def test_the_gain_must_be_positive_by_the_norm_and_by_the_strongest_attack(
    tables: Tables, only: Callable[..., Row], find_check: Callable[..., Check]
) -> None:
    start = "Test AUC(sumKL L=0.4) - Test AUC(isotropic) at the"
    by_norm, *by_strongest = (
        f"{start} gradient norm attack's",
        *(f"{start} strongest attack's equal leak AUC, {measure}" for measure in ("one message", "whole run")),
    )
    only("equal_leak", attack="gradient norm", measure="one message")["gain"] = -0.001
    for measure in ("one message", "whole run"):
        only("equal_leak", attack="strongest of these", measure=measure)["gain"] = 0.001
    assert not find_check(by_norm).holds
    assert all(find_check(name).holds for name in by_strongest)
    row = only("equal_leak", attack="strongest of these", measure="whole run")
    row |= {"gain_low": -0.002, "gain_high": 0.004}
    run = find_check(by_strongest[1])
    assert (run.low, run.high, run.undecided) == (-0.002, 0.004, True)


def test_the_headline_is_what_leaks_less_at_equal_test_auc(tables: Tables) -> None:
    first = tables["equal_leak"][0]
    assert (first["measure"], first["attack"]) == ("whole run", "strongest of these")
    # Both lose test AUC by strength alone, and leak by it.
    assert number(first, "less_leak") == pytest.approx(0, abs=1e-9)
    for column in ("isotropic_leak_auc", "leak_auc"):
        assert number(first, column) == pytest.approx(0.6 + 0.05 + 0.06)
    name = PAPER.checks(tables)[0].name
    assert name.startswith("Leak AUC(isotropic) - leak AUC(sumKL L=0.4) at equal test AUC, strongest attack, whole run")


@pytest.mark.parametrize(
    ("utility", "least"),
    [(0.72, 1.0), (0.715, 0.9), (0.70, 0.6), (0.68, 0.56), (0.60, 0.52), (0.9, 1.0)],
)
def test_at_equal_test_auc_it_is_the_straight_line(utility: float, least: float) -> None:
    assert at_equal_utility(CURVE, utility) == pytest.approx(least)


def test_of_all_noise_that_keeps_as_much_that_which_leaks_least_counts() -> None:
    bent = [Setting(0.0, 1.0, 0.7), Setting(1.0, 0.8, 0.6), Setting(2.0, 0.5, 0.72), Setting(3.0, 0.4, 0.5)]
    assert at_equal_utility(bent, 0.72) == 0.5
    assert at_equal_utility(bent, 0.61) == pytest.approx(0.45)


def test_how_often_the_noise_keeps_as_much_is_told(
    study: Study, answered: Callable[..., Records], monkeypatch: pytest.MonkeyPatch, only: Callable[..., Row]
) -> None:
    assert only("equal_leak", attack="gradient norm", measure="one message")["isotropic_reaches"] == 1
    known = equal_leak.utility

    def better(study: Study, records: Records, name: str) -> dict[int, float]:
        # In the first training run the protected model is the best of all.
        found = dict(known(study, records, name))
        return {**found, min(found): 1.0} if name == "sumKL L=0.4" else found

    monkeypatch.setattr(equal_leak, "utility", better)
    first = equal_leak.rows([study], answered())[0]
    assert first["isotropic_reaches"] == pytest.approx(1 - 1 / study.seeds)


def test_messages_are_added_up_only_where_all_are_attacked_and_rows_come_again(study: Study) -> None:
    assert is_whole(study)
    assert not is_whole(study.model_copy(update={"victims": 20}))
    assert not is_whole(study.model_copy(update={"rounds": 5}))


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
    for attack in ("gradient norm", "direction", "clustering", "label posterior", "strongest of these"):
        for measure in ("one message", "whole run"):
            row = only("equal_leak", attack=attack, measure=measure)
            assert number(row, "isotropic_ratio") == pytest.approx(20)
            assert number(row, "gain") == pytest.approx(0, abs=1e-12)


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
