from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from leaktight.papers import Check, Tables
from leaktight.papers.row import rows_where


def test_both_kinds_of_noise_must_be_alike(tables: Tables, find_check: Callable[..., Check]) -> None:
    laplace = find_check("rMSE(Laplace)")
    assert laplace.value == pytest.approx(0.05)
    assert laplace.holds
    rows_where(tables["laplace"], noise="Laplace")[0]["reconstruction"] = 2.0
    assert not find_check("rMSE(Laplace)").holds


def test_ratios_are_compared_relative_to_each_other(find_check: Callable[..., Check]) -> None:
    noise = find_check("Ratio(Laplace) / ratio(Gaussian) - 1")
    assert noise.value == pytest.approx(0.35 / 0.5 - 1)
    over = math.hypot(math.log(0.45 / 0.35), math.log(0.5 / 0.4))
    assert noise.high == pytest.approx(0.7 * math.exp(over) - 1)
    assert (noise.holds, noise.undecided) == (False, True)


def test_both_kinds_stand_beside_each_other(tables: Tables) -> None:
    assert [(row["noise"], row["reconstruction"]) for row in tables["laplace"]] == [
        ("Gaussian", 0.51),
        ("Laplace", 0.56),
    ]


def test_of_all_strengths_the_one_that_differs_most_is_told(tables: Tables, find_check: Callable[..., Check]) -> None:
    gaussian, laplace = tables["laplace"]
    tables["laplace"] += [
        {**gaussian, "strength": 0.5, "reconstruction": 1.0},
        {**laplace, "strength": 0.5, "reconstruction": 0.7},
    ]
    assert find_check("rMSE(Laplace)").value == pytest.approx(-0.3)
    # A scale at which only one was measured is a gap.
    tables["laplace"].append({**laplace, "strength": 0.1})
    assert find_check("rMSE(Laplace)").value is None
