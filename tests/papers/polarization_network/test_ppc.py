from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from leaktight.papers import Check, Records, Row, Tables
from leaktight.papers.polarization_network import PAPER
from leaktight.papers.polarization_network.ppc import iterations
from leaktight.papers.polarization_network.scales import Study
from leaktight.papers.row import rows_where


@pytest.mark.parametrize("batch_size", [1, 4])
def test_labels_that_are_read_are_checked_at_each_batch_size(
    tables: Tables, batch_size: int, find_check: Callable[..., Check]
) -> None:
    start = f"Membership distance(SPN) of label reading, mean over strengths, batch {batch_size}"
    check = find_check(start)
    assert (check.value, check.holds, check.undecided) == (0.0, False, False)
    for row in rows_where(tables["ppc"], stage="initial", mechanism="SPN", batch_size=batch_size):
        row |= {"label_reading": 0.5, "label_reading_low": 0.25, "label_reading_high": 0.75}
    hidden = find_check(start)
    assert (hidden.value, hidden.low, hidden.holds, hidden.undecided) == (0.5, 0.25, True, True)


def test_accuracies_are_compared_in_the_green_region_alone(tables: Tables, find_check: Callable[..., Check]) -> None:
    start = "Accuracy(SPN) - Accuracy(Gaussian) where"
    assert find_check(start).value == pytest.approx(0.4)
    for row in rows_where(tables["ppc"], stage="initial", mechanism="SPN", strength=0.001):
        row |= {"region": "red", "accuracy": 0.0}
    assert find_check(start).value == pytest.approx(0.4)
    for row in rows_where(tables["ppc"], mechanism="SPN"):
        row["region"] = "white"
    without = find_check(start)
    assert (without.value, without.holds) == (None, False)


def test_a_characteristic_has_a_point_for_each_strength(tables: Tables) -> None:
    rows = rows_where(tables["ppc"], stage="initial", batch_size=1)
    assert [(row["mechanism"], row["strength"]) for row in rows] == [
        ("none", 0.0),
        *(
            (mechanism, strength)
            for mechanism in ("Gaussian", "PPDL-0.05", "PPDL-0.3", "SPN")
            for strength in (0.001, 0.5)
        ),
    ]


def test_a_point_joins_training_and_attack(only: Callable[..., Row]) -> None:
    row = only("ppc", mechanism="SPN", strength=0.5, batch_size=4)
    assert (row["accuracy"], row["ratio"], row["region"]) == (0.8, 0.5, "green")
    assert (row["reconstruction"], row["membership"], row["tracing"]) == (1.04, 0.25, 0.75)
    assert (row["suite_reconstruction"], row["strongest_reconstruction"]) == (0.54, 0.54)
    assert row["unclipped"] == pytest.approx(10.4)
    assert (row["ratio_body"], row["ratio_all"]) == (1.0, 2.0)
    assert (row["accuracy_low"], row["accuracy_high"]) == (0.1, 0.95)


def test_without_perturbation_there_is_no_ratio_and_no_region(only: Callable[..., Row]) -> None:
    row = only("ppc", stage="initial", mechanism="none", batch_size=1)
    assert (row["ratio"], row["ratio_all"], row["region"]) == (None, None, None)


def test_the_trained_network_has_points_of_its_own_with_the_same_accuracy(only: Callable[..., Row]) -> None:
    place = {"mechanism": "SPN", "strength": 0.5, "batch_size": 1}
    before, after = (only("ppc", stage=stage, **place) for stage in ("initial", "trained"))
    assert before["accuracy"] == after["accuracy"] == 0.8
    assert after["reconstruction"] == pytest.approx(before["reconstruction"] + 0.2)


def test_who_knows_the_defence_takes_the_best_attack_at_each_strength(only: Callable[..., Row]) -> None:
    weak, strong = (only("ppc", stage="initial", mechanism="SPN", strength=at, batch_size=1) for at in (0.001, 0.5))
    assert (weak["reconstruction"], weak["suite_reconstruction"]) == (1.01, 2.01)
    assert (weak["strongest_reconstruction"], weak["strongest_reconstruction_high"]) == (1.01, 1.11)
    assert (strong["strongest_reconstruction"], strong["strongest_tracing"]) == (0.51, 0.75)


def test_label_reading_is_shown_against_every_mechanism_and_is_part_of_the_strongest(
    tables: Tables, only: Callable[..., Row]
) -> None:
    for row in tables["ppc"]:
        assert (row["membership"], row["label_reading"], row["strongest_membership"]) == (0.25, 0.0, 0.0)
    assert only("ppc", stage="trained", mechanism="SPN", strength=0.5, batch_size=1)["suite_membership"] == 0.2


def test_a_failed_cell_is_a_gap_and_not_another_number(answered: Callable[..., Records], setup: Any) -> None:
    def fails(cell: object) -> bool:
        return getattr(getattr(cell, "defence", None), "std", None) == 0.5 and getattr(cell, "label", "") == "fan2020"

    tables = PAPER.tables(setup, answered(fails))
    row = rows_where(tables["ppc"], stage="initial", mechanism="Gaussian", strength=0.5, batch_size=1)[0]
    assert (row["reconstruction"], row["accuracy"]) == (None, 0.4)
    gap = rows_where(tables["cap"], stage="initial", mechanism="Gaussian", attack="reconstruction", batch_size=1)[0]
    assert (gap["cap"], gap["cap_low"], gap["strengths"]) == (None, None, 1)


def test_an_attack_that_failed_leaves_no_strongest(answered: Callable[..., Records], setup: Any) -> None:
    tables = PAPER.tables(setup, answered(lambda cell: cell.label == "label_reading"))
    row = rows_where(tables["ppc"], stage="initial", mechanism="SPN", strength=0.5, batch_size=1)[0]
    assert (row["label_reading"], row["strongest_membership"], row["strongest_reconstruction"]) == (None, None, 0.51)
    place = {"stage": "initial", "attack": "membership", "batch_size": 1}
    assert rows_where(tables["cap"], mechanism="SPN, strongest attacker", **place)[0]["cap"] is None
    assert rows_where(tables["cap"], mechanism="SPN", **place)[0]["cap"] == pytest.approx(0.8 * 0.25)


def test_fewer_iterations_than_published_are_told(study: Study) -> None:
    [note] = iterations([study])
    assert note == (
        "In its public code the paper's attack has 300 iterations; here it has 2 for digits at batch 1; 2 for digits at "
        "batch 4."
    )
    long = [sweep.model_copy(update={"iterations": 300}) for sweep in study.sweeps]
    assert iterations([study.model_copy(update={"sweeps": tuple(long)})]) == []
