"""The whole experiment at its smallest scale, on bundled digits."""

from __future__ import annotations

import pytest

from leaktight.papers import Reproduction
from leaktight.papers.polarization_network import PAPER
from leaktight.papers.row import number, rows_where

# The whole run is one fixture; on a busy machine it may take its time.
pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]


def test_every_table_is_full(smoke: Reproduction) -> None:
    assert smoke.tables.keys() == PAPER.keys.keys()
    measured = {
        "ppc": "strongest_reconstruction",
        "cap": "cap",
        "bits": "ratio",
        "laplace": "ratio",
        "cosines": "cosine",
        "left_open": "error",
        "hardened": "strongest_membership",
    }
    for name, rows in smoke.tables.items():
        assert rows
        for row in rows:
            # At equal accuracy or ratio there is nothing where strengths do not reach.
            assert name == "equal" or number(row, measured.get(name, "accuracy")) is not None


def test_what_must_be_so_is_so(smoke: Reproduction) -> None:
    """Noise and polarization lower the ratio as they grow; strong noise hides more than no defence does."""
    points = rows_where(smoke.tables["ppc"], stage="initial", batch_size=1)
    for mechanism in ("Gaussian", "PPDL-0.05", "PPDL-0.3", "SPN"):
        weak, strong = (number(row, "ratio") for row in rows_where(points, mechanism=mechanism))
        assert weak is not None
        assert strong is not None
        assert weak > strong
    errors = [
        number(rows_where(points, mechanism=name, strength=at)[0], "reconstruction")
        for name, at in (("none", 0.0), ("Gaussian", 0.5))
    ]
    assert errors[0] is not None
    assert errors[1] is not None
    assert errors[0] < errors[1]


def test_labels_are_read_off_the_public_head_under_polarization(smoke: Reproduction) -> None:
    for row in rows_where(smoke.tables["ppc"], stage="initial", mechanism="SPN"):
        assert row["label_reading"] == 0.0
        assert row["strongest_membership"] == 0.0
    for row in smoke.tables["left_open"]:
        error = number(row, "error")
        assert error is not None
        assert error < 0.01


def test_perfect_tracing_is_possible(smoke: Reproduction) -> None:
    """Without defence most owners are found; over everything that is owned nobody could."""
    [row] = rows_where(smoke.tables["ppc"], stage="initial", mechanism="none", batch_size=1)
    found = number(row, "tracing")
    assert found is not None
    assert found < 0.5


def test_training_learns_without_defence(smoke: Reproduction) -> None:
    [row] = rows_where(smoke.tables["accuracy"], mechanism="none")
    low = number(row, "accuracy_low")
    assert low is not None
    assert low > 0.3


def test_every_claim_is_answered(smoke: Reproduction) -> None:
    assert len(smoke.checks) == 43
    for check in smoke.checks:
        assert check.value is not None or "ratio is below 1" in check.name or "at equal" in check.name
