from __future__ import annotations

from collections.abc import Callable

import pytest

from leaktight.defences.polarization import Polarization
from leaktight.learning import DecayedSgd, FedAvg, Federated, Standalone
from leaktight.papers import Check, Tables
from leaktight.papers.paper import Plans
from leaktight.papers.polarization_network import PAPER
from leaktight.papers.polarization_network.federated import PARTITIONS
from leaktight.papers.polarization_network.scales import Study
from leaktight.papers.row import rows_where


def test_federated_training_may_lose_a_point(tables: Tables, find_check: Callable[..., Check]) -> None:
    for row in rows_where(tables["federated"], training="federated SPN"):
        row["accuracy"] = 0.895 if row["partition"] == "IID" else 0.85
    claim = "Accuracy(federated SPN) - Accuracy(FedAvg)"
    assert find_check(f"{claim}, digits, alexnet, IID").holds
    assert not find_check(f"{claim}, digits, alexnet, Dirichlet 0.9").holds
    worst = find_check(f"{claim}, the worst of all")
    assert worst.value == pytest.approx(-0.05)
    assert not worst.holds


def test_federations_differ_in_clients_and_partition_alone(plans: Plans) -> None:
    federated, alone = (plans[f"digits-alexnet-{part}"] for part in ("federated", "standalone"))
    assert list(federated.scenarios) == ["IID, 4 clients", "Dirichlet 0.9, 4 clients"] == list(alone.scenarios)
    for name, scenario in federated.scenarios.items():
        assert isinstance(scenario, Federated)
        assert scenario.partition == PARTITIONS[name.split(",")[0]]
        assert isinstance(scenario.protocol, FedAvg)
        assert scenario.protocol.local_steps == 1438 // 4 // 32
        assert alone.scenarios[name] == Standalone(federation=scenario, sample=1)
    assert federated.defences == (Polarization(alpha2=0.1),)
    assert alone.defences == ()


def test_the_full_experiment_halves_its_learning_rate_and_trains_the_others(study: Study) -> None:
    [small] = study.federations
    full = small.model_copy(update={"halved": (100, 200), "others": True})
    plan = PAPER.plans([study.model_copy(update={"federations": (full,)})])["digits-alexnet-federated"]
    [first, _] = plan.scenarios.values()
    assert isinstance(first, Federated)
    assert first.protocol.optimiser == DecayedSgd(learning_rate=0.05, momentum=0.9, rounds=(100, 200))
    assert [defence.kind for defence in plan.defences] == ["polarization", "gaussian_noise", "chain", "chain"]


def test_federations_show_every_way_of_training(tables: Tables) -> None:
    shown = [(row["partition"], row["training"], row["accuracy"]) for row in tables["federated"]]
    ways = [("standalone", 0.2), ("FedAvg", 0.9), ("federated SPN", 0.8)]
    assert shown == [(partition, *way) for partition in ("IID", "Dirichlet 0.9") for way in ways]
    assert {(row["network"], row["clients"]) for row in tables["federated"]} == {("alexnet", 4)}
