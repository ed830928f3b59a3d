from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from leaktight.core.record import Cell
from leaktight.data import Npz
from leaktight.defences.polarization import Polarization
from leaktight.learning import DecayedSgd, FedAvg, Federated, Standalone
from leaktight.papers import Check, Order, Records, Row, Tables
from leaktight.papers.paper import Plans
from leaktight.papers.polarization_network import PAPER
from leaktight.papers.polarization_network.federated import PARTITIONS
from leaktight.papers.polarization_network.scales import Study, studies
from leaktight.papers.row import rows_where


def test_federated_training_must_gain_and_nowhere_lose_more_than_a_point(
    tables: Tables, find_check: Callable[..., Check]
) -> None:
    for row in rows_where(tables["federated"], training="federated SPN"):
        gain = 0.02 if row["partition"] == "IID" else -0.05
        row |= {"gain": gain, "gain_low": gain - 0.01, "gain_high": gain + 0.01}
    claim = "Accuracy(federated SPN) - Accuracy(FedAvg)"
    assert find_check(f"{claim}, digits, alexnet, IID, 4 clients").holds
    lost = find_check(f"{claim}, digits, alexnet, Dirichlet 0.9, 4 clients")
    assert (lost.holds, lost.undecided) == (False, False)
    worst = find_check(f"{claim}, the worst of all")
    assert worst.value == pytest.approx(-0.05)
    assert not worst.holds


def test_a_gain_is_paired_on_seeds_and_test_images(only: Callable[..., Row], tables: Tables) -> None:
    row = only("federated", partition="IID", training="federated SPN")
    # 8 of 10 images right where 9 were without: one more image lost with each seed.
    assert (row["gain"], row["seeds"]) == (pytest.approx(-0.1), 2)
    assert row["gain_low"] is not None
    assert row["gain_high"] is not None
    for other in rows_where(tables["federated"], partition="IID"):
        assert (other["gain"] is None) is (other["training"] != "federated SPN")


def test_a_seed_that_failed_leaves_a_gap(answered: Callable[..., Records], setup: Any) -> None:
    def fails(cell: Cell) -> bool:
        return cell.defence.kind == "polarization" and getattr(cell.scenario, "participants", 0) == 4 and cell.seed == 6

    rows = PAPER.tables(setup, answered(fails))["federated"]
    for row in rows_where(rows, training="federated SPN"):
        assert (row["accuracy"], row["gain"]) == (None, None)
    for row in rows_where(rows, training="FedAvg"):
        assert row["accuracy"] == 0.9


def test_federations_differ_in_clients_and_partition_alone(plans: Plans) -> None:
    federated, alone = (plans[f"digits-alexnet-{part}"] for part in ("federated", "standalone"))
    assert list(federated.scenarios) == ["IID, 4 clients", "Dirichlet 0.9, 4 clients"] == list(alone.scenarios)
    for name, scenario in federated.scenarios.items():
        assert isinstance(scenario, Federated)
        assert scenario.partition == PARTITIONS[name.split(",")[0]]
        assert isinstance(scenario.protocol, FedAvg)
        assert scenario.protocol.local_steps == 1438 // 4 // 32
        assert scenario.averaged == 2
        assert alone.scenarios[name] == Standalone(federation=scenario, sample=1)
    assert federated.defences == (Polarization(alpha2=0.1),)
    assert alone.defences == ()
    assert federated.grid.seeds == alone.grid.seeds == (5, 6)


def test_small_federations_have_few_images_and_many_rounds(tmp_path: Path) -> None:
    images, labels = np.zeros((4000, 8, 8), np.uint8), np.arange(4000) % 10
    for name in ("cifar10", "mnist"):
        (tmp_path / name).mkdir()
        np.savez(tmp_path / name / "set.npz", x_train=images, y_train=labels, x_test=images[:20], y_test=labels[:20])
    for study in studies(Order(scale="small", data=str(tmp_path))):
        for federation in study.federations:
            assert 300 <= (federation.per_client or 0) <= 500
            assert federation.rounds >= 40
            assert (federation.seeds, federation.averaged, federation.learning_rate) == (3, 5, 0.01)
        plan = PAPER.plans([study])[f"{study.name}-alexnet-federated"]
        for scenario in plan.scenarios.values():
            assert isinstance(scenario, Federated)
            assert isinstance(scenario.data, Npz)
            [per_client] = {federation.per_client for federation in study.federations}
            assert scenario.data.train_limit == (per_client or 0) * scenario.participants
            assert scenario.protocol.local_steps == (per_client or 0) // 32


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
