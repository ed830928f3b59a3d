from __future__ import annotations

import pytest

from leaktight.papers import Tables
from leaktight.papers.row import number


def test_other_defences_stand_beside_keys(tables: Tables) -> None:
    found = {row["defence"]: number(row, "recognised") for row in tables["other_defences"]}
    assert list(found) == ["plain", "keys of 4,096", "noise 0.01", "top-k 0.1", "polarization"]
    assert found["top-k 0.1"] == pytest.approx(0.706)
