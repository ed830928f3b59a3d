from __future__ import annotations

from leaktight.papers.reproduction import CLAIM
from leaktight.papers.split_label_leakage import SplitLabelLeakage

PAPER = SplitLabelLeakage()


def test_section_2_2_has_four_numbers() -> None:
    rows = PAPER.published()["moments"]
    assert [(row["moment"], row["leak_auc"]) for row in rows] == [(1, 0.9832), (2, 0.8862), (3, 0.9098), (4, 0.9229)]
    assert all(row.keys() >= set(PAPER.keys["moments"]) for row in rows)


def test_figures_are_told_in_sentences_with_their_source() -> None:
    for name, rows in PAPER.published().items():
        if name != "moments":
            assert rows
            for row in rows:
                assert str(row[CLAIM]).endswith(".")
                assert row["source"]
