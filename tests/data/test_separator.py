"""Which character stands between cells, found from the first lines of tables as people really write them."""

import pytest

from leaktight.data import Csv
from leaktight.data.separator import SEPARATORS, find_separator, has_decimal_commas


@pytest.mark.parametrize("separator", SEPARATORS)
def test_each_of_them_is_found(separator):
    assert (
        find_separator([separator.join(row) for row in (("age", "job"), ("30", "cook"), ("40", "clerk"))]) == separator
    )


@pytest.mark.parametrize(
    ("lines", "separator"),
    [
        (["price;town", "1,50;Bonn", "2,75;Ulm"], ";"),
        (["name,address", "anna,a;b;c", "ben,d;e;f"], ","),
        (["name\tnote", "anna\ta, b, c", "ben\td"], "\t"),
        (["name;note", 'anna;"a;b,c"', 'ben;"two\n', 'lines, really"'], ";"),
        (["a|b", "1,2|3", "4,5|6"], "|"),
        (["alone", "1", "2"], ","),
        ([], ","),
        (["", "a;b", "", "1;2"], ";"),
        (["a, b, c", "1, 2, 3"], ","),
        # One line is broken, and the others still tell.
        (["a;b;c", "1;2;3", "1;2", "4;5;6"], ";"),
        (["a;b", '1;"x"y', "2;3"], ";"),
    ],
)
def test_what_is_within_cells_does_not_matter(lines, separator):
    assert find_separator(lines) == separator


def test_without_a_header_the_number_of_cells_decides():
    lines = ["1,5;2,5", "3,5;4,5"]
    assert find_separator(lines, columns=2) == ";"
    assert find_separator(lines, columns=3) == ","


def test_a_broken_line_is_told_by_the_separator_of_the_others(tmp_path, says):
    file = tmp_path / "a.csv"
    file.write_text("age;job;label\n" + "30;cook;0\n40;clerk;1\n" * 4 + "50;cook\n")
    with says("must have 3 cells in each line", "Got 2 in line 10"):
        Csv(path=file).load()


@pytest.mark.parametrize(
    ("cells", "decimal"),
    [
        (["1,5", "-2,75", "3", "?", ""], True),
        ([",5", "1,25e3"], True),
        (["1,500", "22,750"], False),
        (["1,500", "22,75"], True),
        (["1,5", "2.5"], False),
        (["1,5", "cook"], False),
        (["1,500,000", "2"], False),
        (["15", "2"], False),
        (["a, b", "c, d"], False),
    ],
)
def test_a_comma_may_stand_for_the_point(cells, decimal):
    assert has_decimal_commas(cells) == decimal


def test_a_table_as_a_spreadsheet_writes_it(tmp_path):
    file = tmp_path / "a.csv"
    file.write_text("price;towns;label\n" + "1,5;Bonn, Ulm;0\n2,5;Ulm, Bonn;1\n" * 5)
    data = Csv(path=file).load()
    assert data.columns.names == ("price", "towns", "towns")
    assert sorted(set(data.train.inputs[:, 0].tolist())) == [-1.0, 1.0]
