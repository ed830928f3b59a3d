from __future__ import annotations

from collections.abc import Callable

import pytest

from leaktight.papers import Check, Records, Row, Tables
from leaktight.papers.polarization_network import equal, ppc
from leaktight.papers.polarization_network.scales import Study
from leaktight.papers.row import rows_where


@pytest.fixture
def curve(monkeypatch: pytest.MonkeyPatch, study: Study) -> Callable[..., Row]:
    """Return a function that measures a mechanism at two strengths, and returns its row at a level."""

    def find(weak: Row, strong: Row, at: str, level: float) -> Row:
        common: Row = {"data_set": "digits", "stage": "initial", "batch_size": 1}
        points: list[Row] = [{**common, "mechanism": "none", "strength": 0.0, "accuracy": 0.9}]
        points += [
            {**common, "mechanism": "SPN", "strength": strength, **row}
            for strength, row in ((0.1, weak), (0.5, strong))
        ]
        monkeypatch.setattr(ppc, "rows", lambda studies, records: points)
        found = equal.rows([study], Records({}))
        [row] = rows_where(found, mechanism="SPN", at=at, level=level)
        return row

    return find


def test_between_strengths_a_number_lies_on_the_line_over_the_logarithm_of_the_ratio(curve: Callable[..., Row]) -> None:
    row = curve({"ratio": 10.0, "reconstruction": 0.2}, {"ratio": 0.1, "reconstruction": 1.0}, "ratio", 1.0)
    assert row["reconstruction"] == pytest.approx(0.6)


def test_at_equal_accuracy_the_loss_is_against_no_mechanism(curve: Callable[..., Row]) -> None:
    weak: Row = {"accuracy": 0.9, "reconstruction": 0.0, "reconstruction_low": -0.1, "reconstruction_high": 0.1}
    strong: Row = {"accuracy": 0.8, "reconstruction": 1.0, "reconstruction_low": 0.8, "reconstruction_high": 1.2}
    row = curve(weak, strong, "accuracy lost", 0.05)
    assert row["reconstruction"] == pytest.approx(0.5)
    assert (row["reconstruction_low"], row["reconstruction_high"]) == (pytest.approx(0.3), pytest.approx(0.7))


def test_beyond_the_measured_strengths_there_is_a_gap(curve: Callable[..., Row]) -> None:
    assert (
        curve({"ratio": 9.0, "reconstruction": 0.2}, {"ratio": 2.0, "reconstruction": 1.0}, "ratio", 1.0)[
            "reconstruction"
        ]
        is None
    )
    # A strength without a number leaves one too.
    assert curve({"ratio": 9.0}, {"ratio": 0.1, "reconstruction": 1.0}, "ratio", 1.0)["reconstruction"] is None


def test_polarization_is_compared_with_each_mechanism_where_both_cost_the_same(
    tables: Tables, find_check: Callable[..., Check]
) -> None:
    place: Row = {"data_set": "digits", "stage": "trained", "at": "accuracy lost", "level": 0.05}
    for row in rows_where(tables["equal"], **place):
        row["strongest_reconstruction"] = {"SPN": 0.5, "Gaussian": 0.8}.get(str(row["mechanism"]))
    check = find_check("rMSE(SPN) - rMSE(Gaussian) at equal accuracy lost (0.05), strongest attacker, trained")
    assert (check.value, check.holds) == (pytest.approx(-0.3), False)
    assert (
        find_check("rMSE(SPN) - rMSE(PPDL-0.3) at equal accuracy lost (0.05), strongest attacker, trained").value
        is None
    )
