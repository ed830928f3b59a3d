from __future__ import annotations

from collections.abc import Callable
from statistics import fmean

import pytest

from leaktight.papers import Row, Tables
from leaktight.papers.polarization_network import PAPER
from leaktight.papers.polarization_network.accuracy import ACCURACY
from leaktight.papers.polarization_network.cap import CAP
from leaktight.papers.polarization_network.scales import ALPHA2, NOISE
from leaktight.papers.row import number, rows_where

# Table 11: the sum of each row, and of each mechanism's column.
ACCURACY_SUMS: dict[str, tuple[dict[float, float], tuple[float, ...]]] = {
    "Gaussian": (
        {0.5: 2.1429, 0.1: 2.5944, 0.01: 2.9339, 0.001: 2.9752, 0.0001: 2.9867},
        (4.9012, 3.0918, 1.4279, 4.2122),
    ),
    "PPDL-0.05": (
        {0.5: 1.8708, 0.1: 2.4643, 0.01: 2.7114, 0.001: 2.6923, 0.0001: 2.6519},
        (4.8677, 2.6768, 0.8594, 3.9868),
    ),
    "PPDL-0.3": (
        {0.5: 1.9742, 0.1: 2.5802, 0.01: 2.8812, 0.001: 2.8767, 0.0001: 2.8818},
        (4.9011, 3.0063, 1.2352, 4.0515),
    ),
    "SPN": (
        {0.5: 2.8220, 0.4: 2.8272, 0.3: 2.8473, 0.2: 2.8853, 0.1: 2.9161, 0.01: 2.9904, 0.001: 2.9828, 0.0001: 2.9964},
        (7.9482, 5.4878, 2.7026, 7.1289),
    ),
}


@pytest.mark.parametrize(("mechanism", "sums"), ACCURACY_SUMS.items())
def test_each_accuracy_is_as_printed(mechanism: str, sums: tuple[dict[float, float], tuple[float, ...]]) -> None:
    rows = ACCURACY[mechanism]
    assert {strength: round(sum(values), 4) for strength, values in rows.items()} == sums[0]
    assert tuple(round(sum(column), 4) for column in zip(*rows.values(), strict=True)) == sums[1]


def test_tables_7_to_11_are_whole() -> None:
    tables = PAPER.published_tables()
    assert len(tables["cap"]) == 4 * 4 * 9
    assert len(tables["accuracy"]) == 4 * (3 * len(NOISE) + len(ALPHA2))
    assert {mechanism: tuple(sorted(strengths)) for mechanism, strengths in ACCURACY.items()} == {
        "Gaussian": NOISE,
        "PPDL-0.05": NOISE,
        "PPDL-0.3": NOISE,
        "SPN": ALPHA2,
    }


def test_single_entries_stand_where_the_paper_has_them() -> None:
    tables = PAPER.published_tables()
    at = {"data_set": "SVHN", "stage": "initial", "mechanism": "SPN", "attack": "membership", "batch_size": 4}
    assert rows_where(tables["cap"], **at) == [{**at, "cap": 0.66}]
    place = {"data_set": "CIFAR100", "mechanism": "PPDL-0.3", "strength": 0.1}
    assert rows_where(tables["accuracy"], **place) == [{**place, "accuracy": 0.1931}]


def test_the_text_follows_from_its_tables() -> None:
    """Strong noise costs more than 20 points on CIFAR10 (section 4.2), and a CAP is about the mean accuracy times 1."""
    rows = rows_where(PAPER.published_tables()["accuracy"], data_set="CIFAR10", mechanism="Gaussian")
    values = [value for row in rows if (value := number(row, "accuracy")) is not None]
    assert max(values) - min(values) > 0.2
    assert CAP["CIFAR10"]["Gaussian"][1] == pytest.approx(fmean(values), abs=0.05)


def test_accuracies_are_those_of_table_11(tables: Tables, only: Callable[..., Row]) -> None:
    assert len(tables["accuracy"]) == 9
    assert only("accuracy", mechanism="PPDL-0.3", strength=0.5)["accuracy"] == 0.3
