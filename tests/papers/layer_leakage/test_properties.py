from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from leaktight.core.record import Cell
from leaktight.papers import Records, Row, Tables
from leaktight.papers.layer_leakage import PAPER
from leaktight.papers.row import number


def test_properties_of_one_task_are_told_of_by_what_is_measured_without_the_attack(
    tables: Tables, only: Callable[..., Row]
) -> None:
    assert {(row["task"], row["network"]) for row in tables["properties"]} == {("glasses", "VGG11Net")}
    assert list(dict.fromkeys(row["property"] for row in tables["properties"])) == [
        "gender: Male",
        "age: Senior",
        "hair: black",
    ]
    row = only("properties", property="age: Senior", layer=9)
    # Over three seeds that were answered with a thousandth more each: the interval is narrower than a reading's own.
    assert [number(row, f"property_auc{end}") for end in ("", "_low", "_high")] == pytest.approx(
        [0.906, 0.9035, 0.9085], abs=1e-4
    )
    assert number(row, "sensitivity") == pytest.approx(1.0)
    assert (number(row, "r_v_information"), number(row, "r_other")) == pytest.approx((1.0, 1.0))
    assert 0 < (number(row, "r_sensitivity") or 0) < 1
    assert "other" not in row


def test_another_property_s_information_is_that_of_another_subject(
    answered: Callable[..., Records], setup: Any
) -> None:
    def fails(cell: Cell) -> bool:
        return cell.label == "V-information" and cell.scenario.to_dict()["data"].get("private_property") == ["Black"]

    tables = PAPER.tables(setup, answered(fails))
    for row in tables["properties"]:
        assert row["r_other"] is None
        assert row["r_v_information"] == pytest.approx(1.0)
