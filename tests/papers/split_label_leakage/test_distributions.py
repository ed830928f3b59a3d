from __future__ import annotations

from collections.abc import Callable

import pytest

from leaktight.papers import Check, Row, Tables
from leaktight.papers.row import number, rows_where


def test_the_two_factors_of_the_norm_are_compared_at_every_moment(
    tables: Tables, find_check: Callable[..., Check]
) -> None:
    for row in tables["distributions"]:
        row |= {"error_q50": 0.5 if row["label"] == "positive" else 0.1 * int(row["moment"]), "slope_q50": 2.0}
    error, slope = find_check("Error(positives)"), find_check("log10(slope")
    assert (error.value, error.holds) == (pytest.approx(0.5 - 0.4), True)
    assert (slope.value, slope.holds) == (0.0, True)
    row = next(row for row in tables["distributions"] if row["label"] == "positive" and row["defence"] == "none")
    row |= {"error_q50": 0.05, "slope_q50": 200.0}
    error, slope = find_check("Error(positives)"), find_check("log10(slope")
    assert (error.value, error.holds) == (pytest.approx(-0.05), False)
    assert (slope.value, slope.holds) == (pytest.approx(2.0), False)


def test_moments_and_distributions_are_those_after_the_first_look(tables: Tables, only: Callable[..., Row]) -> None:
    assert [row["step"] for row in rows_where(tables["moments"], defence="none")] == [10, 20, 30, 40]
    assert number(only("moments", defence="none", moment=2), "leak_auc") == pytest.approx(1.002)
    # The third of all names is the median of the negatives' norm.
    assert number(only("distributions", defence="none", moment=4, label="negative"), "norm_q50") == pytest.approx(2.4)
    assert number(
        only("distributions", defence="sumKL L=0.4", moment=1, label="positive"), "cosine_q95"
    ) == pytest.approx(19.1)
