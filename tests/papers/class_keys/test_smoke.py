"""Every part of the experiment on bundled digits, cut to the least."""

from __future__ import annotations

from pathlib import Path

import pytest

from leaktight.papers import Order, reproduce
from leaktight.papers.class_keys import PAPER


@pytest.mark.long
def test_one_step_of_every_part_runs(tmp_path: Path) -> None:
    found = reproduce(PAPER, Order(steps=1), tmp_path / "out")
    assert found.failed == ()
    assert found.tables.keys() == found.published.keys() == PAPER.keys.keys()
    for rows in found.tables.values():
        assert rows
        for row in rows:
            assert not [
                column for column, value in row.items() if value is None and not column.endswith(("_low", "_high"))
            ]
    assert all(check.value is not None for check in found.checks)
