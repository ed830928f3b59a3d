from __future__ import annotations

from leaktight.papers import Order
from leaktight.papers.layer_leakage import LayerLeakage
from leaktight.papers.layer_leakage.published import TABLE_1
from leaktight.papers.layer_leakage.settings import study_of
from leaktight.papers.reproduction import CLAIM, rows_where

PAPER = LayerLeakage()


def test_table_1_is_there_in_full() -> None:
    rows = PAPER.published()["correlation"]
    assert len(rows) == 8
    assert rows_where(rows, network="VGG11Net", measure="sensitivity") == [
        {"network": "VGG11Net", "measure": "sensitivity", "r": 0.686, "t": 5.25, "p": "<0.001"}
    ]
    assert [row["r"] for row in rows_where(rows, measure="V-information")] == [0.959, 0.952, 0.965, 0.951]
    assert [row["p"] for row in rows_where(rows, measure="sensitivity")] == [0.003, "<0.001", 0.472, 0.008]


def test_its_rows_stand_beside_ours(sets: str) -> None:
    networks = study_of(Order(scale="small", data=sets)).networks
    assert [*networks, "All"] == list(TABLE_1)
    assert all(row.keys() >= set(PAPER.keys["correlation"]) for row in PAPER.published()["correlation"])


def test_figures_are_told_in_sentences_with_their_source() -> None:
    for name, rows in PAPER.published().items():
        if name != "correlation":
            assert rows
            for row in rows:
                assert str(row[CLAIM]).endswith(".")
                assert row["source"]
