"""The published numbers, against independent lines of the paper: its Table 1 and the claims of its text."""

from __future__ import annotations

from statistics import fmean

import pytest

from leaktight.papers.polarization_network import PolarizationNetwork
from leaktight.papers.polarization_network.published import ACCURACY, CAP, published
from leaktight.papers.polarization_network.settings import ALPHA2, NOISE
from leaktight.papers.reproduction import CLAIM, number, rows_where

# Table 1, as printed, for reconstruction, membership and tracing at batch 1, 4, 8; its SPN rows differ by up to 0.02 from Tables 8 and 9.
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


@pytest.mark.parametrize(("which", "values"), TABLE_1.items())
def test_table_1_agrees_with_tables_8_and_9(which: tuple[str, str], values: tuple[float, ...]) -> None:
    data_set, mechanism = which
    assert CAP[data_set][mechanism] == pytest.approx(values, abs=0.021)


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
