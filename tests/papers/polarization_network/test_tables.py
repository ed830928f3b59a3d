from __future__ import annotations

from collections.abc import Callable

import pytest

from leaktight.papers import Order, Tables
from leaktight.papers.paper import Records
from leaktight.papers.polarization_network import PolarizationNetwork
from leaktight.papers.reproduction import Row, rows_where

PAPER = PolarizationNetwork()


@pytest.fixture(scope="module")
def tables(answered: Callable[..., Records]) -> Tables:
    return PAPER.tables(Order(), answered())


def only(rows: list[Row], **wanted: object) -> Row:
    [row] = rows_where(rows, **wanted)  # type: ignore[arg-type]
    return row


def test_there_are_six_tables_whose_keys_name_each_row_once(tables: Tables) -> None:
    assert list(tables) == ["ppc", "cap", "accuracy", "federated", "bits", "laplace"]
    for name, rows in tables.items():
        places = [tuple(row[key] for key in PAPER.keys[name]) for row in rows]
        assert len(set(places)) == len(places) > 0
        assert len({tuple(row) for row in rows}) == 1


def test_a_characteristic_has_a_point_for_each_strength(tables: Tables) -> None:
    rows = rows_where(tables["ppc"], batch_size=1)
    assert [(row["mechanism"], row["strength"]) for row in rows] == [
        ("none", 0.0),
        *((mechanism, strength) for mechanism in ("Gaussian", "PPDL-0.05", "PPDL-0.3", "SPN") for strength in (0.001, 0.5)),
    ]


def test_a_point_joins_training_and_attack(tables: Tables) -> None:
    row = only(tables["ppc"], mechanism="SPN", strength=0.5, batch_size=4)
    assert (row["accuracy"], row["ratio"], row["region"]) == (0.8, 0.5, "green")
    assert (row["reconstruction"], row["membership"], row["tracing"]) == (1.04, 0.25, 0.75)
    assert (row["adaptive_reconstruction"], row["strongest_reconstruction"]) == (0.54, 0.54)
    assert (row["accuracy_low"], row["accuracy_high"]) == (0.1, 0.95)


def test_without_perturbation_there_is_no_ratio_and_no_region(tables: Tables) -> None:
    row = only(tables["ppc"], mechanism="none", batch_size=1)
    assert (row["ratio"], row["region"]) == (None, None)
    assert row["adaptive_reconstruction"] is None


def test_who_knows_the_defence_takes_the_best_attack_at_each_strength(tables: Tables) -> None:
    weak, strong = (only(tables["ppc"], mechanism="SPN", strength=at, batch_size=1) for at in (0.001, 0.5))
    assert (weak["reconstruction"], weak["adaptive_reconstruction"]) == (1.01, 2.01)
    assert (weak["strongest_reconstruction"], weak["strongest_reconstruction_high"]) == (1.01, 1.11)
    assert (strong["strongest_reconstruction"], strong["strongest_tracing"]) == (0.51, 0.75)


def test_label_reading_is_shown_against_every_mechanism_and_is_part_of_the_strongest(tables: Tables) -> None:
    for row in tables["ppc"]:
        assert (row["membership"], row["label_reading"], row["strongest_membership"]) == (0.25, 0.0, 0.0)
    assert only(tables["ppc"], mechanism="SPN", strength=0.5, batch_size=1)["adaptive_membership"] == 0.2


@pytest.mark.parametrize(
    ("mechanism", "attack", "batch_size", "cap"),
    [
        ("Gaussian", "reconstruction", 1, 0.4 * 0.51),
        ("PPDL-0.05", "reconstruction", 1, 0.3 * 0.76),
        ("SPN", "reconstruction", 4, 0.8 * 1.04),
        ("SPN, adaptive attacker", "reconstruction", 1, 0.8 * (1.01 + 0.51) / 2),
        ("PPDL-0.05, adaptive attacker", "reconstruction", 1, 0.3 * 0.16),
        ("SPN, adaptive attacker", "reconstruction", 4, 0.8 * 0.54),
        ("SPN", "membership", 1, 0.8 * 0.25),
        ("PPDL-0.3", "tracing", 4, 0.3 * 0.75),
    ],
)
def test_a_cap_is_the_mean_of_accuracy_times_distance(
    tables: Tables, mechanism: str, attack: str, batch_size: int, cap: float
) -> None:
    row = only(tables["cap"], mechanism=mechanism, attack=attack, batch_size=batch_size)
    assert row["cap"] == pytest.approx(cap)
    assert row["strengths"] == (2 if batch_size == 1 else 1)
    low, high = row["cap_low"], row["cap_high"]
    assert isinstance(low, float)
    assert isinstance(high, float)
    assert low < cap < high


def test_accuracies_are_those_of_table_11(tables: Tables) -> None:
    assert len(tables["accuracy"]) == 9
    assert only(tables["accuracy"], mechanism="PPDL-0.3", strength=0.5)["accuracy"] == 0.3


def test_federations_show_every_way_of_training(tables: Tables) -> None:
    shown = [(row["partition"], row["training"], row["accuracy"]) for row in tables["federated"]]
    ways = [("standalone", 0.2), ("FedAvg", 0.9), ("federated SPN", 0.8)]
    assert shown == [(partition, *way) for partition in ("IID", "Dirichlet 0.9") for way in ways]
    assert {(row["network"], row["clients"]) for row in tables["federated"]} == {("alexnet", 4)}


def test_ablations_stand_beside_what_they_vary(tables: Tables) -> None:
    assert [(row["bits"], row["ratio"]) for row in tables["bits"]] == [(64, 0.5), (128, 0.5)]
    assert [(row["noise"], row["reconstruction"]) for row in tables["laplace"]] == [("Gaussian", 0.51), ("Laplace", 0.56)]


def test_a_failed_cell_is_a_gap_and_not_another_number(answered: Callable[..., Records]) -> None:
    def fails(cell: object) -> bool:
        return getattr(getattr(cell, "defence", None), "std", None) == 0.5 and getattr(cell, "label", "") == "fan2020"

    tables = PAPER.tables(Order(), answered(fails))
    row = only(tables["ppc"], mechanism="Gaussian", strength=0.5, batch_size=1)
    assert (row["reconstruction"], row["accuracy"]) == (None, 0.4)
    gap = only(tables["cap"], mechanism="Gaussian", attack="reconstruction", batch_size=1)
    assert (gap["cap"], gap["cap_low"], gap["strengths"]) == (None, None, 1)


def test_an_attack_that_failed_leaves_no_strongest(answered: Callable[..., Records]) -> None:
    tables = PAPER.tables(Order(), answered(lambda cell: cell.label == "label_reading"))
    row = only(tables["ppc"], mechanism="SPN", strength=0.5, batch_size=1)
    assert (row["label_reading"], row["strongest_membership"], row["strongest_reconstruction"]) == (None, None, 0.51)
    assert only(tables["cap"], mechanism="SPN, adaptive attacker", attack="membership", batch_size=1)["cap"] is None
    assert only(tables["cap"], mechanism="SPN", attack="membership", batch_size=1)["cap"] == pytest.approx(0.8 * 0.25)


def test_nobody_gets_zero_membership_without_reading_labels(tables: Tables) -> None:
    row = only(tables["cap"], mechanism="SPN, adaptive attacker", attack="membership", batch_size=4)
    assert (row["cap"], row["strengths"]) == (0.0, 1)
