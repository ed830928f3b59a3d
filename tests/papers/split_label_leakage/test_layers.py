from __future__ import annotations

import pytest

from leaktight.papers import Tables
from leaktight.papers.row import number, rows_where


def test_layers_are_numbered_from_the_inputs_to_the_cut(tables: Tables) -> None:
    values = [number(row, "leak_auc") for row in rows_where(tables["layers"], defence="none")]
    assert values == pytest.approx([0.97, 0.98, 0.99, 1.0])
    levels = [number(row, "chance") for row in rows_where(tables["layers"], defence="none")]
    assert levels == pytest.approx([0.58, 0.57, 0.56, 0.55])
