from __future__ import annotations

from collections.abc import Callable

import pytest

from leaktight.papers import Check, Tables
from leaktight.papers.row import rows_where
from leaktight.papers.transformation_search.mechanisms import BASELINES


def test_defences_that_lose_accuracy_do_not_count_as_rivals(
    tables: Tables, find_check: Callable[..., Check], put: Callable[..., None]
) -> None:
    start = "PSNR above chance(lowest of the other defences that are as accurate)"
    rivals = [row for row in tables["defences"] if str(row["defence"]).startswith("Laplace")]
    put(rivals, "psnr_above_chance", -6.5)
    assert not find_check(start).holds
    put(rivals, "accuracy", 0.3)
    assert find_check(start).holds


def test_table_3_has_the_other_defences_beside_the_hybrid(tables: Tables) -> None:
    assert [row["defence"] for row in tables["defences"]] == ["none", *BASELINES, "random", "hybrid"]
    assert rows_where(tables["defences"], defence="pruning 95%")[0]["psnr_drop"] == pytest.approx(1.0)
