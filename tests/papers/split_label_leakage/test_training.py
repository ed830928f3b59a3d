from __future__ import annotations

from collections.abc import Callable

import pytest

from leaktight.papers import Check, Tables
from leaktight.papers.row import number, rows_where


@pytest.mark.parametrize("layer", ["cut", "first"])
def test_leakage_without_protection_must_be_high(tables: Tables, layer: str, find_check: Callable[..., Check]) -> None:
    start = f"Median leak AUC of the norm attack, unprotected, {layer} layer"
    assert find_check(start).holds
    rows_where(tables["training"], layer=layer, defence="none")[0] |= {
        "leak_auc": 0.79,
        "leak_auc_low": 0.77,
        "leak_auc_high": 0.81,
    }
    assert find_check(start) == Check(
        name=f"{start}, digits", value=0.79, expected="at least 0.8", holds=False, low=0.77, high=0.81, undecided=True
    )


@pytest.mark.parametrize("layer", ["cut", "first"])
def test_leakage_with_protection_must_be_low(tables: Tables, layer: str, find_check: Callable[..., Check]) -> None:
    start = f"95 % quantile of the leak AUC of the norm attack, sumKL L=0.4, {layer} layer"
    row = rows_where(tables["training"], layer=layer, defence="sumKL L=0.4")[0]
    for value, holds in ((0.6, True), (0.61, False)):
        row["leak_auc_q95"] = value
        assert find_check(start).holds is holds


def test_a_higher_bound_must_leak_less(tables: Tables, find_check: Callable[..., Check]) -> None:
    check = find_check("Leak AUC(sumKL L=0.1)")
    assert check.value == pytest.approx(0.9 - 0.6)
    weak = rows_where(tables["training"], layer="cut", defence="sumKL L=0.1")[0]
    weak |= {"leak_auc": 0.62, "leak_auc_low": 0.55, "leak_auc_high": 0.69}
    assert find_check("Leak AUC(sumKL L=0.1)").word == "undecided"
    tables["training"] = [row for row in tables["training"] if row["defence"] != "sumKL L=0.1"]
    assert find_check("Leak AUC(none)").value == pytest.approx(1 - 0.6)


def test_leakage_over_training_is_told_by_layer_and_fifth(tables: Tables) -> None:
    cut, first = (rows_where(tables["training"], layer=layer, defence="sumKL L=0.4")[0] for layer in ("cut", "first"))
    assert number(cut, "leak_auc") == pytest.approx(0.6)
    assert number(first, "leak_auc") == pytest.approx(0.57)
    assert number(first, "leak_auc_q95") == pytest.approx(0.59)
    assert (number(cut, "chance"), number(first, "chance")) == pytest.approx((0.55, 0.58))
    # Thirty steps: the first fifth has those numbered 0 to 5.
    assert number(cut, "fifth_1") == pytest.approx(0.6025)
    assert number(cut, "fifth_5") == pytest.approx(0.6265)
