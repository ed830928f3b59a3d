from __future__ import annotations

import pytest

from leaktight.papers import Order
from leaktight.papers.split_label_leakage import PAPER
from leaktight.papers.split_label_leakage.scales import studies


def test_section_2_2_has_four_numbers() -> None:
    rows = PAPER.published_tables()["moments"]
    assert [(row["moment"], row["leak_auc"]) for row in rows] == [(1, 0.9832), (2, 0.8862), (3, 0.9098), (4, 0.9229)]
    assert all(row.keys() >= set(PAPER.keys["moments"]) for row in rows)


@pytest.mark.parametrize("scale", ["small", "paper"])
def test_they_stand_beside_the_study_with_the_paper_s_arrangement(scale: str, sets: str) -> None:
    [name] = {row["data_set"] for row in PAPER.published_tables()["moments"]}
    [study] = [study for study in studies(Order.model_validate({"scale": scale, "data": sets})) if study.name == name]
    assert (study.label_party, study.feature_party) == (("*",), ("*",))
