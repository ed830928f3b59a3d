"""Flags of a property, from arrays and from the cells of a column."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leaktight.data.properties import as_flags, mark_positive


@pytest.mark.parametrize(
    "values",
    [
        np.array([0, 1, 1], np.uint8),
        np.array([False, True, True]),
        np.array([0.0, 1.0, 1.0]),
        np.array(["0", "1", "1"]),
        np.array([[0], [1], [1]]),
    ],
    ids=lambda values: str(values.dtype),
)
def test_flags_of_every_usual_kind(values):
    flags = as_flags(values, "It")
    assert flags.tolist() == [0, 1, 1]
    assert flags.dtype == np.int64


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (np.array([0, 1, 2]), ("It must be 0 or 1 for each example", "Got `2` at example 2 instead")),
        (np.array([1, -1]), ("Got `-1` at example 1",)),
        (np.array([0, 255], np.uint8), ("Got `255` at example 1",)),
        (np.array(["1", "0", "", "yes"]), ("Got `` at example 2",)),
        (np.array([0.5, 1]), ("fractions or NaN",)),
        (np.array([np.nan, 1]), ("fractions or NaN",)),
        (np.eye(3), ("one number or word per example", "(3, 3)")),
    ],
)
def test_anything_else_is_refused(values, words, says):
    with says(*words):
        as_flags(values, "It")


@pytest.mark.parametrize(
    ("cells", "positive", "flags"),
    [
        (["0", "1", "1", "1"], "1", [0, 1, 1, 1]),
        (["-1", "1", "1", "1"], "1", [0, 1, 1, 1]),
        (["2", "2", "1", "2"], "2", [1, 1, 0, 1]),
        (["10", "9", "10", "10"], "10", [1, 0, 1, 1]),
        (["0", "0.0", "1", "1.00"], "1", [0, 0, 1, 1]),
        (["True", "True", "False", "True"], "True", [1, 1, 0, 1]),
        (["yes", "yes", "no", "yes"], "yes", [1, 1, 0, 1]),
        (["m", "m", "f", "m"], "f", [0, 0, 1, 0]),
        (["f", "f", "m", "f"], "m", [0, 0, 1, 0]),
        (["m", "f", "f", "m"], "m", [1, 0, 0, 1]),
    ],
)
def test_which_of_two_means_1(cells, positive, flags):
    train, test, found = mark_positive(cells[:3], cells[3:], "", "It")
    assert found == positive
    assert [*train, *test] == flags


def test_the_rarer_word_is_rarer_in_both_parts_together():
    assert mark_positive(["m", "f", "f"], ["m"] * 5, "", "It")[2] == "f"


@settings(deadline=None, max_examples=40)
@given(st.lists(st.sampled_from(["a", "b", "c", "1", "2"]), min_size=2, max_size=30), st.data())
def test_a_named_one_means_1_and_all_others_0(cells, data):
    positive = data.draw(st.sampled_from(cells))
    at = data.draw(st.integers(0, len(cells)))
    train, test, found = mark_positive(cells[:at], cells[at:], positive, "It")
    assert found == positive
    assert [*train, *test] == [int(cell == positive) for cell in cells]


def test_a_number_is_found_however_it_is_written():
    assert mark_positive(["1.0", "2.0", "3.0"], ["2"], "2", "It")[0].tolist() == [0, 1, 0]


@pytest.mark.parametrize(
    ("cells", "positive", "words"),
    [
        ([*"abc"], "", ("It must have two different values", "Got 3: `a`, `b`, `c`;", "`private_property_positive`")),
        ([*"abcdefg"], "", ("Got 7: `a`, `b`, `c`, `d`, `e`, ...;",)),
        (["a", "a"], "", ("Got 1: `a`;",)),
        (["1", "x", "2"], "", ("Got 3",)),
        (["Black", "White"], "Blak", ("rows with `Blak`, which is to mean 1. Got none. Did you mean `Black`?",)),
        ([str(n) for n in range(31)], "40", ("Got none. There are 31 others.",)),
    ],
)
def test_wrong_cells(cells, positive, words, says):
    with says(*words):
        mark_positive(cells, cells[:1], positive, "It")
