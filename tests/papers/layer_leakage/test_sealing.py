from __future__ import annotations

from collections.abc import Callable

import pytest

from leaktight.papers import Check, Row, Tables
from leaktight.papers.row import rows_where


def test_what_remains_is_listed_by_how_many_are_sealed(tables: Tables) -> None:
    rows = rows_where(tables["sealing"], task="gender", network="AlexNet")
    assert [row["sealed"] for row in rows] == [0, 1, 2, 3, 4, 5]
    assert [row["last"] for row in rows] == ["none", "head", "linear1", "conv3", "conv2", "conv1"]
    # The mean of seeds 5, 6 and 7; layers are as large as their number, 15 in all.
    assert [row["remaining_auc"] for row in rows] == pytest.approx([0.906 - count / 50 for count in range(6)])
    assert [row["bytes_share"] for row in rows] == pytest.approx([0, 5 / 15, 9 / 15, 12 / 15, 14 / 15, 1])


def test_one_sealed_layer_must_leave_little(tables: Tables, find_check: Callable[..., Check]) -> None:
    words = "Property AUC of what remains with one sealed layer"
    assert not find_check(words, "LFW, gender, race: Black, AlexNet").holds
    for row in rows_where(tables["sealing"], task="gender", network="AlexNet", sealed=1):
        row["remaining_auc"] = 0.55
    assert find_check(words, "LFW, gender, race: Black, AlexNet").holds


def test_labels_are_counted_beside_the_attack(only: Callable[..., Row]) -> None:
    plain, matched = (only("matched", task="gender", labels=kind) for kind in ("as they come", "matched"))
    assert (plain["counting_auc"], matched["counting_auc"]) == pytest.approx((0.8, 0.5))
    assert plain["property_auc"] == pytest.approx(0.906)
