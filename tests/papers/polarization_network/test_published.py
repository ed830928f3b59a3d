"""The published numbers, against independent lines of the paper: its Table 1 and the claims of its text."""

from __future__ import annotations

from statistics import fmean

import pytest

from leaktight.papers.polarization_network import PolarizationNetwork
from leaktight.papers.polarization_network.published import ACCURACY, CAP, published
from leaktight.papers.polarization_network.settings import ALPHA2, NOISE
from leaktight.papers.reproduction import CLAIM, number, rows_where

# Table 1, as printed, for reconstruction, membership and tracing at batch 1, 4, 8.
TABLE_1 = {
    ("CIFAR10", "Gaussian"): (0.57, 0.63, 0.63, 0.00, 0.45, 0.47, 0.42, 0.57, 0.58),
    ("CIFAR10", "PPDL-0.05"): (0.55, 0.55, 0.55, 0.00, 0.37, 0.44, 0.50, 0.50, 0.50),
    ("CIFAR10", "PPDL-0.3"): (0.57, 0.61, 0.61, 0.00, 0.43, 0.49, 0.54, 0.54, 0.54),
    ("CIFAR10", "SPN"): (0.69, 0.70, 0.70, 0.24, 0.50, 0.55, 0.60, 0.62, 0.64),
    ("CIFAR100", "Gaussian"): (0.23, 0.31, 0.30, 0.01, 0.22, 0.25, 0.14, 0.24, 0.24),
    ("CIFAR100", "PPDL-0.05"): (0.18, 0.18, 0.18, 0.02, 0.13, 0.16, 0.16, 0.16, 0.16),
    ("CIFAR100", "PPDL-0.3"): (0.21, 0.26, 0.26, 0.00, 0.19, 0.22, 0.19, 0.19, 0.19),
    ("CIFAR100", "SPN"): (0.35, 0.35, 0.36, 0.17, 0.28, 0.31, 0.29, 0.30, 0.30),
}


# Where Table 1 does not repeat Tables 8 and 9: the place in the row, and what these have there.
MISPRINTS: dict[tuple[str, str], dict[int, float]] = {
    ("CIFAR10", "SPN"): {5: 0.56, 6: 0.61, 7: 0.63},
    ("CIFAR100", "Gaussian"): {3: 0.03},
    ("CIFAR100", "SPN"): {0: 0.37, 1: 0.36, 2: 0.35},
}
# Tables 7 to 10: the sum of each row, and of each column.
CAP_SUMS: dict[str, tuple[dict[str, float], tuple[float, ...]]] = {
    "MNIST": (
        {"Gaussian": 15.19, "PPDL-0.05": 16.79, "PPDL-0.3": 16.91, "SPN": 17.03},
        (16.14, 15.82, 16.06, 0.74, 2.82, 3.17, 3.68, 3.73, 3.76),
    ),
    "CIFAR10": (
        {"Gaussian": 4.32, "PPDL-0.05": 3.96, "PPDL-0.3": 4.33, "SPN": 5.27},
        (2.38, 2.49, 2.49, 0.24, 1.75, 1.96, 2.07, 2.24, 2.26),
    ),
    "CIFAR100": (
        {"Gaussian": 1.96, "PPDL-0.05": 1.33, "PPDL-0.3": 1.71, "SPN": 2.73},
        (0.99, 1.11, 1.09, 0.22, 0.82, 0.94, 0.78, 0.89, 0.89),
    ),
    "SVHN": (
        {"Gaussian": 5.73, "PPDL-0.05": 5.65, "PPDL-0.3": 5.56, "SPN": 6.87},
        (3.16, 3.35, 3.36, 0.60, 2.22, 2.62, 2.72, 2.89, 2.89),
    ),
}
# Table 11: the sum of each row, and of each mechanism's column.
ACCURACY_SUMS: dict[str, tuple[dict[float, float], tuple[float, ...]]] = {
    "Gaussian": ({0.5: 2.1429, 0.1: 2.5944, 0.01: 2.9339, 0.001: 2.9752, 0.0001: 2.9867}, (4.9012, 3.0918, 1.4279, 4.2122)),
    "PPDL-0.05": ({0.5: 1.8708, 0.1: 2.4643, 0.01: 2.7114, 0.001: 2.6923, 0.0001: 2.6519}, (4.8677, 2.6768, 0.8594, 3.9868)),
    "PPDL-0.3": ({0.5: 1.9742, 0.1: 2.5802, 0.01: 2.8812, 0.001: 2.8767, 0.0001: 2.8818}, (4.9011, 3.0063, 1.2352, 4.0515)),
    "SPN": (
        {0.5: 2.8220, 0.4: 2.8272, 0.3: 2.8473, 0.2: 2.8853, 0.1: 2.9161, 0.01: 2.9904, 0.001: 2.9828, 0.0001: 2.9964},
        (7.9482, 5.4878, 2.7026, 7.1289),
    ),
}


@pytest.mark.parametrize(("which", "values"), TABLE_1.items())
def test_table_1_agrees_with_tables_8_and_9_but_for_its_misprints(which: tuple[str, str], values: tuple[float, ...]) -> None:
    data_set, mechanism = which
    other = MISPRINTS.get(which, {})
    assert CAP[data_set][mechanism] == tuple(other.get(place, value) for place, value in enumerate(values))


@pytest.mark.parametrize(("data_set", "sums"), CAP_SUMS.items())
def test_each_cap_is_as_printed(data_set: str, sums: tuple[dict[str, float], tuple[float, ...]]) -> None:
    """A mistyped number changes a row's sum and a column's."""
    rows = CAP[data_set]
    assert {name: round(sum(values), 2) for name, values in rows.items()} == sums[0]
    assert tuple(round(sum(column), 2) for column in zip(*rows.values(), strict=True)) == sums[1]


@pytest.mark.parametrize(("mechanism", "sums"), ACCURACY_SUMS.items())
def test_each_accuracy_is_as_printed(mechanism: str, sums: tuple[dict[float, float], tuple[float, ...]]) -> None:
    rows = ACCURACY[mechanism]
    assert {strength: round(sum(values), 4) for strength, values in rows.items()} == sums[0]
    assert tuple(round(sum(column), 4) for column in zip(*rows.values(), strict=True)) == sums[1]


def test_every_table_is_there_and_has_the_columns_of_ours() -> None:
    tables = published()
    keys = PolarizationNetwork.keys
    assert tables.keys() == keys.keys()
    for name, rows in tables.items():
        assert rows
        for row in rows:
            assert set(row) == {CLAIM, "source"} or set(keys[name]) < set(row)


def test_tables_7_to_11_are_whole() -> None:
    tables = published()
    assert len(tables["cap"]) == 4 * 4 * 9
    assert len(tables["accuracy"]) == 4 * (3 * len(NOISE) + len(ALPHA2))
    assert {mechanism: tuple(sorted(strengths)) for mechanism, strengths in ACCURACY.items()} == {
        "Gaussian": NOISE,
        "PPDL-0.05": NOISE,
        "PPDL-0.3": NOISE,
        "SPN": ALPHA2,
    }


def test_single_entries_stand_where_the_paper_has_them() -> None:
    tables = published()
    at = {"data_set": "SVHN", "mechanism": "SPN", "attack": "membership", "batch_size": 4}
    assert rows_where(tables["cap"], **at) == [{**at, "cap": 0.66}]
    place = {"data_set": "CIFAR100", "mechanism": "PPDL-0.3", "strength": 0.1}
    assert rows_where(tables["accuracy"], **place) == [{**place, "accuracy": 0.1931}]


def test_the_text_follows_from_its_tables() -> None:
    """More than 20 points are lost to strong noise on CIFAR10 (section 4.2), and a CAP is about the mean accuracy times 1."""
    rows = rows_where(published()["accuracy"], data_set="CIFAR10", mechanism="Gaussian")
    values = [value for row in rows if (value := number(row, "accuracy")) is not None]
    assert max(values) - min(values) > 0.2
    assert CAP["CIFAR10"]["Gaussian"][1] == pytest.approx(fmean(values), abs=0.05)
