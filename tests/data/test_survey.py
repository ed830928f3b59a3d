"""Surveys: what a column holds, as people's tables really have it."""

import pytest

from leaktight.data.survey import survey_column

ROWS = range(60)


@pytest.mark.parametrize(
    ("name", "cells", "holds"),
    [
        ("age", [str(20 + row % 40) for row in ROWS], "numbers"),
        ("income", [f"{row * 13.7:.2f}" for row in ROWS], "numbers"),
        ("job", [("cook", "clerk", "pilot")[row % 3] for row in ROWS], "words"),
        ("country", ["de"] * 60, "constant"),
        ("empty", ["", "NA"] * 30, "nothing"),
        ("mostly", ["", "x"] * 30, "constant"),
        # What names the row.
        ("row", [str(row) for row in ROWS], "id"),
        ("Unnamed", [str(row + 1000) for row in ROWS], "id"),
        ("customer_id", [str(row * 17) for row in ROWS], "id"),
        ("customer", [f"C{row:04}" for row in ROWS], "id"),
        ("name", [f"anna {row}" for row in ROWS], "id"),
        # Numbers that are different in each row, and still amounts.
        ("salary", [str(1000 + row * 17) for row in ROWS], "numbers"),
        ("width", [f"{row}.5" for row in ROWS], "numbers"),
        # Words that are nearly all different.
        ("note", [f"text {row // 2}" if row < 20 else f"other {row}" for row in ROWS], "text"),
    ],
)
def test_what_a_column_holds(name, cells, holds):
    found = survey_column(name, cells)
    assert found.holds == holds
    assert found.is_input == (holds in ("numbers", "words"))
    assert bool(found.reason) != found.is_input


def test_many_words_are_text_even_if_each_occurs_often():
    assert survey_column("town", [f"town {row % 300}" for row in range(3000)]).holds == "text"
    assert survey_column("town", [f"town {row % 200}" for row in range(3000)]).holds == "words"


def test_in_a_short_table_different_words_say_nothing():
    assert survey_column("job", ["cook", "clerk", "pilot"]).holds == "words"


def test_missing_cells_are_counted_and_do_not_matter_otherwise():
    found = survey_column("age", ["1", "?", "2", "", "2"])
    assert (found.holds, found.missing, found.different) == ("numbers", 2, 2)


@pytest.mark.parametrize(
    ("cells", "codes"), [(["1", "2", "3"] * 9, True), (["0", "1"] * 9, False), (["1.5", "2", "3"] * 9, False)]
)
def test_few_whole_numbers_may_be_codes(cells, codes):
    assert survey_column("grade", cells).may_be_codes == codes
