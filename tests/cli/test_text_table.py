"""Tables of text: nothing is cut, and no line is too wide."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leaktight.cli.text_table import Group, TextTable

NAMES = ("dlg2019", "a-rather-long-name-of-an-attack, changed", "geiping2020")
TITLES = ("Attack", "PSNR in dB (95 %)", "Chance", "Labels", "Of any class, worst training")


def make_table(*names: str, heading: str = "Gaussian noise (std 0.001): accuracy 82.0 %") -> TextTable:
    rows = [[name, "31.2 (29.0 to 33.4)", "11.0", "100 %", "25.0 %"] for name in names]
    return TextTable(TITLES, [Group(heading, rows), Group("Top-k (share 0.1): accuracy 80.0 %", rows)])


def plain(table: TextTable, width: int) -> list[str]:
    return [line.plain for line in table.lines(width)]


def test_attacks_stand_below_the_line_of_their_defence() -> None:
    assert plain(make_table("dlg2019", "idlg2020"), 66) == [
        "                                                  Of any class,",
        "  Attack      PSNR in dB (95 %)  Chance  Labels  worst training",
        "---------------------------------------------------------------",
        "Gaussian noise (std 0.001): accuracy 82.0 %",
        "  dlg2019   31.2 (29.0 to 33.4)    11.0   100 %          25.0 %",
        "  idlg2020  31.2 (29.0 to 33.4)    11.0   100 %          25.0 %",
        "",
        "Top-k (share 0.1): accuracy 80.0 %",
        "  dlg2019   31.2 (29.0 to 33.4)    11.0   100 %          25.0 %",
        "  idlg2020  31.2 (29.0 to 33.4)    11.0   100 %          25.0 %",
    ]


@pytest.mark.parametrize("width", [34, 45, 60, 80, 120])
def test_every_name_is_whole_and_no_line_too_wide(width: int) -> None:
    lines = plain(make_table(*NAMES), width)
    assert max(map(len, lines)) <= width
    text = " ".join(" ".join(lines).split())
    for words in (*NAMES, "Gaussian noise (std 0.001): accuracy 82.0 %", "31.2 (29.0 to 33.4)", "25.0 %"):
        assert words in text
    assert "…" not in text


def test_too_many_numbers_come_in_parts_that_all_name_their_rows() -> None:
    table = TextTable(["Key", *(f"number {at}" for at in range(12))], [Group("", [["a", *(12 * ["1.25"])]])])
    lines = plain(table, 40)
    assert table.parts(40) == 3
    assert [line.split()[0] for line in lines if line.startswith("a")] == ["a"] * 3
    assert sum(line.count("1.25") for line in lines) == 12


def test_a_name_that_leaves_no_room_has_a_line_of_its_own() -> None:
    table = make_table(NAMES[1])
    assert table.fits(80)
    assert not table.fits(50)
    lines = plain(table, 50)
    assert f"  {NAMES[1]}" in lines


WORDS = st.text(st.characters(codec="ascii", categories=("L", "N")), min_size=1, max_size=30)


@given(
    names=st.lists(st.lists(WORDS, min_size=1, max_size=4).map(" ".join), min_size=1, max_size=4),
    numbers=st.lists(WORDS, min_size=0, max_size=6),
    heading=st.lists(WORDS, max_size=5).map(" ".join),
    width=st.integers(20, 100),
)
def test_any_table_keeps_to_its_width_and_loses_nothing(
    names: list[str], numbers: list[str], heading: str, width: int
) -> None:
    rows = [[name, *numbers] for name in names]
    lines = plain(TextTable(["Name", *(f"title {at}" for at in range(len(numbers)))], [Group(heading, rows)]), width)
    assert max(map(len, lines)) <= width
    letters = "".join("".join(lines).split())
    for words in itertools.chain(names, [heading]):
        # Lines of a name may stand beside its numbers only where it has one line.
        assert all(word in letters or len(word) > width - 4 for word in words.split())
