"""The whole experiment at its smallest scale, on bundled digits, and every part of it on a table with categories."""

from __future__ import annotations

from pathlib import Path

import pytest

from leaktight.papers import Order, Reproduction, reproduce
from leaktight.papers.row import number, rows_where
from leaktight.papers.split_label_leakage import PAPER

pytestmark = pytest.mark.long


def test_every_table_is_full(smoke: Reproduction) -> None:
    assert smoke.tables.keys() == smoke.published.keys() == PAPER.keys.keys()
    for rows in smoke.tables.values():
        for row in rows:
            gaps = [name for name, value in row.items() if value is None and not name.endswith(("_low", "_high"))]
            assert gaps == ([] if "ceiling" not in row or str(row["defence"]).startswith("sumKL") else ["ceiling"])


def test_labels_leak_at_the_cut_and_at_the_first_layer(smoke: Reproduction) -> None:
    for layer in ("cut", "first"):
        [row] = rows_where(smoke.tables["training"], layer=layer, defence="none")
        assert (number(row, "leak_auc") or 0) > 0.8


def test_protection_hides_them_the_better_the_higher_its_bound(smoke: Reproduction) -> None:
    leaks = [number(row, "leak_auc") for row in rows_where(smoke.tables["training"], layer="cut")]
    plain, weak, strong = (leak or 0 for leak in leaks)
    assert plain > weak > strong
    assert strong < 0.6


def test_positives_have_the_longer_gradients(smoke: Reproduction) -> None:
    for moment in (2, 3, 4):
        negative, positive = rows_where(smoke.tables["distributions"], defence="none", moment=moment)
        assert (number(positive, "norm_q50") or 0) > (number(negative, "norm_q50") or 0)
        assert (number(positive, "cosine_q50") or 0) > 0 > (number(negative, "cosine_q50") or 0)


def test_every_claim_is_answered(smoke: Reproduction) -> None:
    assert len(smoke.checks) == 16
    for check in smoke.checks:
        assert check.value is not None


def test_one_step_of_the_full_experiment_runs_on_categories(sets: str, tmp_path: Path) -> None:
    done = reproduce(PAPER, Order(scale="paper", data=sets, steps=1), tmp_path / "out")
    assert done.failed == ()
    for check in done.checks:
        assert check.value is not None
