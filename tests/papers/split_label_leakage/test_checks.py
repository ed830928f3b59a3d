from __future__ import annotations

import copy
from collections.abc import Callable

import pytest

from leaktight.papers import Check, Tables
from leaktight.papers.paper import Records
from leaktight.papers.reproduction import rows_where
from leaktight.papers.split_label_leakage.checks import checks_of
from leaktight.papers.split_label_leakage.measured import Measured
from leaktight.papers.split_label_leakage.settings import Study
from leaktight.papers.split_label_leakage.tables import tables_of


@pytest.fixture
def tables(study: Study, answered: Callable[..., Records]) -> Tables:
    return copy.deepcopy(tables_of([Measured.of(study, answered())]))


def found(tables: Tables, start: str) -> Check:
    [check] = [check for check in checks_of(tables) if check.name.startswith(start)]
    return check


def test_each_claim_is_checked_once_for_each_data_set(tables: Tables) -> None:
    names = [check.name for check in checks_of(tables)]
    assert len(set(names)) == len(names) == 11
    for rows in tables.values():
        rows += [{**row, "data_set": "other"} for row in rows]
    assert [check.name for check in checks_of(tables)] == names + [name.replace("digits", "other") for name in names]


@pytest.mark.parametrize("layer", ["cut", "first"])
def test_leakage_without_protection_must_be_high(tables: Tables, layer: str) -> None:
    start = f"Median leak AUC of the norm attack, unprotected, {layer} layer"
    assert found(tables, start).holds
    rows_where(tables["training"], layer=layer, defence="none")[0] |= {
        "leak_auc": 0.79,
        "leak_auc_low": 0.77,
        "leak_auc_high": 0.81,
    }
    assert found(tables, start) == Check(
        name=f"{start}, digits", value=0.79, expected="at least 0.8", holds=False, low=0.77, high=0.81, undecided=True
    )


@pytest.mark.parametrize("layer", ["cut", "first"])
def test_leakage_with_protection_must_be_low(tables: Tables, layer: str) -> None:
    start = f"95 % quantile of the leak AUC of the norm attack, sumKL L=0.4, {layer} layer"
    row = rows_where(tables["training"], layer=layer, defence="sumKL L=0.4")[0]
    for value, holds in ((0.6, True), (0.61, False)):
        row["leak_auc_q95"] = value
        assert found(tables, start).holds is holds


def test_a_higher_bound_must_leak_less(tables: Tables) -> None:
    check = found(tables, "Leak AUC(sumKL L=0.1)")
    assert check.value == pytest.approx(0.9 - 0.6)
    for table in ("training",):
        tables[table] = [row for row in tables[table] if row["defence"] != "sumKL L=0.1"]
    assert found(tables, "Leak AUC(none)").value == pytest.approx(1 - 0.6)


def test_two_hundredths_of_test_auc_may_be_lost(tables: Tables) -> None:
    start = "Test AUC(unprotected)"
    assert not found(tables, start).holds
    row = rows_where(tables["trade_off"], defence="sumKL L=0.4")[0]
    row |= {"lost_auc": 0.02, "lost_auc_low": 0.01, "lost_auc_high": 0.02}
    assert (found(tables, start).holds, found(tables, start).undecided) == (True, False)
    row["lost_auc_high"] = 0.03
    assert (found(tables, start).high, found(tables, start).undecided) == (0.03, True)


def test_the_gain_must_be_positive_by_the_norm_and_by_the_strongest_attack(tables: Tables) -> None:
    by_norm, by_strongest = (
        f"Test AUC(sumKL L=0.4) - Test AUC(isotropic) at the {one}" for one in ("gradient norm", "strongest")
    )
    rows_where(tables["equal_leak"], attack="gradient norm")[0]["gain"] = -0.001
    rows_where(tables["equal_leak"], attack="strongest of these")[0]["gain"] = 0.001
    assert not found(tables, by_norm).holds
    assert found(tables, by_strongest).holds
    rows_where(tables["equal_leak"], attack="strongest of these")[0] |= {"gain_low": -0.002, "gain_high": 0.004}
    check = found(tables, by_strongest)
    assert (check.low, check.high, check.undecided) == (-0.002, 0.004, True)


def test_the_chosen_number_of_steps_must_be_as_good_as_the_best(tables: Tables) -> None:
    start = "Held-out AUC"
    assert found(tables, start).value == pytest.approx(0)
    rows_where(tables["steps"], steps=20)[0]["held_out_auc"] = 0.75
    assert not found(tables, start).holds
    tables["steps"] = []
    assert len(checks_of(tables)) == 10


def test_gaps_never_hold(study: Study, answered: Callable[..., Records]) -> None:
    tables = tables_of([Measured.of(study, answered(lambda cell: True))])
    checks = checks_of(tables)
    assert len(checks) == 11
    assert not any(check.holds for check in checks)


def test_the_two_factors_of_the_norm_are_compared_at_every_moment(tables: Tables) -> None:
    for row in tables["distributions"]:
        row |= {"error_q50": 0.5 if row["label"] == "positive" else 0.1 * int(row["moment"]), "slope_q50": 2.0}
    error, slope = checks_of(tables)[:2]
    assert (error.value, error.holds) == (pytest.approx(0.5 - 0.4), True)
    assert (slope.value, slope.holds) == (0.0, True)
    row = next(row for row in tables["distributions"] if row["label"] == "positive" and row["defence"] == "none")
    row |= {"error_q50": 0.05, "slope_q50": 200.0}
    error, slope = checks_of(tables)[:2]
    assert (error.value, error.holds) == (pytest.approx(-0.05), False)
    assert (slope.value, slope.holds) == (pytest.approx(2.0), False)
