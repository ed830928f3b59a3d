from __future__ import annotations

from collections.abc import Callable

import pytest

from leaktight.papers import Check, Tables
from leaktight.papers.row import number, rows_where
from leaktight.papers.transformation_search.functions import LOWEST
from leaktight.transforms.library import LIBRARY, same_as


def test_three_of_the_five_lowest_functions_must_be_the_paper_s(
    tables: Tables, find_check: Callable[..., Check]
) -> None:
    for row in tables["functions"]:
        row["rank"] = {3: 1, 15: 2, 18: 3, 0: 4, 2: 5}.get(int(str(row["function"])), 9)
    check = find_check("How many of the five lowest functions")
    assert (check.value, check.holds) == (3.0, True)
    rows_where(tables["functions"], function=18)[0]["rank"] = 9
    assert not find_check("How many of the five lowest functions").holds


def test_the_lowest_functions_do_what_the_text_says() -> None:
    assert [(LIBRARY[index].operation, LIBRARY[index].level) for index in LOWEST] == [
        ("translateX", 9),
        ("brightness", 9),
        ("contrast", 7),
        ("brightness", 6),
        ("contrast", 6),
    ]


def test_figure_5_ranks_functions_and_those_that_do_the_same_alike(tables: Tables) -> None:
    rows = {row["function"]: row for row in tables["functions"]}
    assert list(rows) == list(range(50))
    assert rows[3]["privacy_score"] == pytest.approx(0.01)
    for index, row in rows.items():
        assert isinstance(index, int)
        assert row["rank"] == rows[same_as(index)]["rank"]
    assert sorted({number(row, "rank") or 0 for row in rows.values()}) == list(range(1, 29))
