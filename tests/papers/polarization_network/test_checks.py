from __future__ import annotations

import copy
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
    assert len(set(names)) == len(names) == 12
    for name in names[:7]:
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
    assert check.value == pytest.approx(0.8 * 0.51 - 0.4 * 0.51)


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


def test_cifar10_is_what_the_claims_are_about(tables: Tables) -> None:
    for rows in tables.values():
        rows += [{**row, "data_set": "CIFAR10"} for row in rows]
    assert found(tables, "CAP(SPN) - CAP(Gaussian)").name.endswith("CIFAR10")


def test_gaps_never_hold(answered: Callable[..., Records]) -> None:
    tables = PAPER.tables(Order(), answered(lambda cell: True))
    assert not any(check.holds for check in PAPER.checks(tables))
