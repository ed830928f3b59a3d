from __future__ import annotations

import pytest

from leaktight.papers import Order
from leaktight.papers.reproduction import CLAIM, rows_where
from leaktight.papers.transformation_search import TransformationSearch
from leaktight.papers.transformation_search.published import FOUND, LOWEST, TABLE_1, TABLE_2, TABLE_3, TABLE_4
from leaktight.papers.transformation_search.settings import VARIANTS, study_of
from leaktight.transforms.library import LIBRARY
from leaktight.transforms.policy import PUBLISHED

PAPER = TransformationSearch()


def test_tables_1_to_4_are_there_in_full() -> None:
    published = PAPER.published()
    numbers = {name: [row for row in rows if CLAIM not in row] for name, rows in published.items()}
    assert {name: len(rows) for name, rows in numbers.items() if rows} == {
        "policies": 20,
        "attacks": 12,
        "defences": 9,
        "transfer": 8,
    }
    for name, rows in numbers.items():
        for row in rows:
            assert row.keys() >= set(PAPER.keys[name])
    [hybrid] = rows_where(numbers["policies"], data_set="CIFAR100", network="ResNet20", policy="hybrid")
    assert (hybrid["psnr"], hybrid["accuracy"], hybrid["functions"]) == (7.64, 0.7792, "3-1-7+43-18-18")


def test_tables_that_repeat_each_other_agree() -> None:
    """Table 2 and 3 are about CIFAR100 with ResNet20; Table 4 repeats what Table 1 has without a policy."""
    none, *_, hybrid = TABLE_1["CIFAR100", "ResNet20"]
    assert TABLE_2["Adam+Cosine"] == (none[0], hybrid[0])
    assert (TABLE_3["none"], TABLE_3["hybrid"]) == (none, hybrid)
    for network, rows in TABLE_4.items():
        assert rows["none"] == TABLE_1["F-MNIST", network][0]
    assert TABLE_2.keys() == VARIANTS.keys()


def test_policies_are_those_that_the_library_ships() -> None:
    for (data, network), (first, second) in FOUND.items():
        name = f"ats2021-{network.lower()}-{data.lower().replace('f-mnist', 'fashion-mnist')}"
        assert str(PUBLISHED[name]) == f"{first}+{second}"


def test_the_lowest_functions_do_what_the_text_says() -> None:
    assert [(LIBRARY[index].operation, LIBRARY[index].level) for index in LOWEST] == [
        ("translateX", 9),
        ("brightness", 9),
        ("contrast", 7),
        ("brightness", 6),
        ("contrast", 6),
    ]


@pytest.mark.parametrize("table", ["points", "correlation", "training", "functions", "similarity", "adaptive", "privacy_aware"])
def test_figures_are_told_in_sentences_with_their_source(table: str) -> None:
    rows = PAPER.published()[table]
    assert rows
    for row in rows:
        assert str(row[CLAIM]).endswith(".")
        assert row["source"]


def test_the_full_experiment_has_a_row_of_ours_for_each_of_table_1(sets: str) -> None:
    study = study_of(Order(scale="paper", data=sets))
    assert {(one.data_set, one.network) for one in study.subjects} == set(TABLE_1)
    assert {one.network for one in study.transfers} == set(TABLE_4)
