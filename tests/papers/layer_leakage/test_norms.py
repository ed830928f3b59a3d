from __future__ import annotations

from collections.abc import Callable

import pytest

from leaktight.papers import Row, Tables
from leaktight.papers.row import number, rows_where


def test_each_norm_has_its_own_correlation(tables: Tables, only: Callable[..., Row]) -> None:
    assert len(tables["norms"]) == 5 * len(tables["layers"])
    signs = {
        norm: {number(row, "r") for row in rows_where(tables["norms"], network="FCNet", norm=norm)} for norm in "F1"
    }
    assert len(signs["F"]) == len(signs["1"]) == 1
    assert signs["1"] == {-(signs["F"].pop() or 0)}
    row = only("norms", task="glasses", network="AlexNet", layer=3, norm="infinity")
    assert number(row, "sensitivity") == pytest.approx(10 * 0.81)
    assert row["p"] == only("correlation", network="AlexNet", measure="sensitivity")["p"]
