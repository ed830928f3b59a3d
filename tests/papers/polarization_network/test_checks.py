from __future__ import annotations

import copy
import math
from collections.abc import Callable

import pytest

from leaktight.papers import Check, Order, Tables
from leaktight.papers.paper import Records
from leaktight.papers.polarization_network import PolarizationNetwork
from leaktight.papers.polarization_network.checks import checks_of
from leaktight.papers.reproduction import rows_where

PAPER = PolarizationNetwork()


@pytest.fixture
def tables(answered: Callable[..., Records]) -> Tables:
    return copy.deepcopy(PAPER.tables(Order(), answered()))


def found(tables: Tables, start: str) -> Check:
    [check] = [check for check in checks_of(tables) if check.name.startswith(start)]
    return check


def test_each_claim_is_checked_once(tables: Tables) -> None:
    names = [check.name for check in PAPER.checks(tables)]
    assert len(set(names)) == len(names) == 16
    for name in (*names[:9], *names[-4:]):
        assert name.endswith("digits")


def test_caps_are_compared_at_batch_1(tables: Tables) -> None:
    plain = found(tables, "CAP(SPN) - CAP(Gaussian)")
    assert plain.value == pytest.approx(0.8 * 1.01 - 0.4 * 0.51)
    assert plain.holds
    for row in rows_where(tables["cap"], mechanism="SPN", attack="reconstruction", batch_size=1):
        row["cap"] = 0.0
    assert not found(tables, "CAP(SPN) - CAP(Gaussian)").holds


def test_the_adaptive_attacker_has_a_check_of_its_own(tables: Tables) -> None:
    check = found(tables, "CAP(SPN, adaptive attacker) - CAP(Gaussian)")
    # The plain attack is the better one at the weak strength, the adaptive one at the strong.
    assert check.value == pytest.approx(0.8 * (1.01 + 0.51) / 2 - 0.4 * 0.51)
    other = found(tables, "CAP(SPN, adaptive attacker) - CAP(PPDL-0.3, adaptive attacker)")
    assert other.value == pytest.approx(0.8 * (1.01 + 0.51) / 2 - 0.3 * 0.16)


def test_a_check_carries_the_interval_of_its_difference(tables: Tables) -> None:
    check = found(tables, "CAP(SPN) - CAP(Gaussian)")
    assert check.low is not None
    assert check.high is not None
    assert check.value is not None
    assert check.low < check.value < check.high
    assert check.undecided is (check.low <= 0)
    for row in rows_where(tables["cap"], attack="reconstruction", batch_size=1):
        cap = {"SPN": 0.8, "Gaussian": 0.2}.get(str(row["mechanism"]), 0.5)
        row |= {"cap": cap, "cap_low": cap - 0.03, "cap_high": cap + 0.04}
    sure = found(tables, "CAP(SPN) - CAP(Gaussian)")
    assert (sure.low, sure.high) == pytest.approx((0.6 - 0.05, 0.6 + 0.05))
    assert (sure.holds, sure.undecided) == (True, False)


@pytest.mark.parametrize("batch_size", [1, 4])
def test_labels_that_are_read_are_checked_at_each_batch_size(tables: Tables, batch_size: int) -> None:
    start = f"Membership distance(SPN) of label reading, mean over strengths, batch {batch_size}"
    check = found(tables, start)
    assert (check.value, check.holds, check.undecided) == (0.0, False, False)
    for row in rows_where(tables["ppc"], mechanism="SPN", batch_size=batch_size):
        row |= {"label_reading": 0.5, "label_reading_low": 0.25, "label_reading_high": 0.75}
    hidden = found(tables, start)
    assert (hidden.value, hidden.low, hidden.holds, hidden.undecided) == (0.5, 0.25, True, True)


def test_accuracies_are_compared_in_the_green_region_alone(tables: Tables) -> None:
    start = "Accuracy(SPN) - Accuracy(Gaussian)"
    assert found(tables, start).value == pytest.approx(0.4)
    for row in rows_where(tables["ppc"], mechanism="SPN", strength=0.001):
        row |= {"region": "red", "accuracy": 0.0}
    assert found(tables, start).value == pytest.approx(0.4)
    for row in rows_where(tables["ppc"], mechanism="SPN"):
        row["region"] = "white"
    without = found(tables, start)
    assert (without.value, without.holds) == (None, False)


def test_federated_training_may_lose_a_point(tables: Tables) -> None:
    for row in rows_where(tables["federated"], training="federated SPN"):
        row["accuracy"] = 0.895 if row["partition"] == "IID" else 0.85
    claim = "Accuracy(federated SPN) - Accuracy(FedAvg)"
    assert found(tables, f"{claim}, digits, alexnet, IID").holds
    assert not found(tables, f"{claim}, digits, alexnet, Dirichlet 0.9").holds
    worst = found(tables, f"{claim}, the worst of all")
    assert worst.value == pytest.approx(-0.05)
    assert not worst.holds


def test_ablations_are_compared(tables: Tables) -> None:
    assert found(tables, "rMSE(128 bits) - rMSE(64 bits)").value == pytest.approx(0.0)
    laplace = found(tables, "rMSE(Laplace)")
    assert laplace.value == pytest.approx(0.05)
    assert laplace.holds
    rows_where(tables["laplace"], noise="Laplace")[0]["reconstruction"] = 2.0
    assert not found(tables, "rMSE(Laplace)").holds


def test_ratios_of_ablations_are_compared_relative_to_each_other(tables: Tables) -> None:
    noise = found(tables, "Ratio(Laplace) / ratio(Gaussian) - 1")
    assert noise.value == pytest.approx(0.35 / 0.5 - 1)
    over = math.hypot(math.log(0.45 / 0.35), math.log(0.5 / 0.4))
    assert noise.high == pytest.approx(0.7 * math.exp(over) - 1)
    assert (noise.holds, noise.undecided) == (False, True)
    start = "Ratio(128 bits) / ratio(64 bits) - 1"
    assert (found(tables, start).value, found(tables, start).holds) == (0.0, False)
    rows_where(tables["bits"], bits=128)[0]["ratio"] = 0.55
    assert found(tables, start).value == pytest.approx(0.1)
    assert found(tables, start).holds


def test_of_all_strengths_the_one_that_differs_most_is_told(tables: Tables) -> None:
    gaussian, laplace = tables["laplace"]
    tables["laplace"] += [
        {**gaussian, "strength": 0.5, "reconstruction": 1.0},
        {**laplace, "strength": 0.5, "reconstruction": 0.7},
    ]
    assert found(tables, "rMSE(Laplace)").value == pytest.approx(-0.3)
    # A scale at which only one was measured is a gap.
    tables["laplace"].append({**laplace, "strength": 0.1})
    assert found(tables, "rMSE(Laplace)").value is None


def test_cifar10_is_what_the_claims_are_about(tables: Tables) -> None:
    for rows in tables.values():
        rows += [{**row, "data_set": "CIFAR10"} for row in rows]
    assert found(tables, "CAP(SPN) - CAP(Gaussian)").name.endswith("CIFAR10")


def test_gaps_never_hold(answered: Callable[..., Records]) -> None:
    tables = PAPER.tables(Order(), answered(lambda cell: True))
    assert not any(check.holds for check in PAPER.checks(tables))
