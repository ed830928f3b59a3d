"""What the positions of a row hold, and how columns are found by name."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from leaktight.core.errors import InvalidValue
from leaktight.core.task import Batch
from leaktight.data import Columns, Data

TABLE = Columns(names=("age", "job", "job", "town", "I1", "I10"), ids=(0, 0, 0, 7, 0, 0))


def test_numbers_and_categories_are_told_apart():
    assert TABLE.numbers == (0, 1, 2, 4, 5)
    assert TABLE.categories == (3,)
    assert len(TABLE) == 6


@pytest.mark.parametrize(
    ("patterns", "positions"),
    [
        (["town", "age"], (0, 3)),
        (["job"], (1, 2)),
        (["I*"], (4, 5)),
        (["I1"], (4,)),
        (["*"], tuple(range(6))),
        ([], ()),
    ],
)
def test_columns_are_found_by_name_or_pattern_and_one_hot_ones_stay_together(patterns, positions):
    assert TABLE.find(patterns) == positions


@given(st.lists(st.integers(0, 5), unique=True))
def test_a_part_of_the_columns_keeps_names_and_ids(positions):
    part = TABLE.take(positions)
    assert list(zip(part.names, part.ids, strict=True)) == [(TABLE.names[at], TABLE.ids[at]) for at in positions]


def test_a_name_with_a_star_in_it_is_found_as_it_is():
    assert Columns(("a[1]", "b*"), (0, 0)).find(["a[1]", "b*"]) == (0, 1)


@pytest.mark.parametrize(
    ("columns", "pattern", "words"),
    [
        (TABLE, "twon", ["no column `twon` for a party", "Did you mean `town`?"]),
        (TABLE, "zebra", ["Known are", "`age`"]),
        (Columns.plain(64), "zebra", ["There are 64, from `0` to `63`."]),
    ],
)
def test_an_unknown_column_is_said_with_a_hint_of_reasonable_length(columns, pattern, words, says):
    with says(*words):
        columns.find([pattern])


@pytest.mark.parametrize(
    ("names", "ids", "word"), [(("a",), (0, 0), "as many as its 1 names"), (("a",), (-1,), "at least 0")]
)
def test_columns_must_make_sense(names, ids, word, says):
    with says(word):
        Columns(names, ids)


def test_statistics_leave_ids_as_they_are():
    rows = torch.tensor([[1.0, 4.0], [3.0, 6.0]])
    data = Data(
        Batch(rows, torch.tensor([0, 1])), Batch(rows, torch.tensor([0, 1])), 2, columns=Columns(("a", "b"), (0, 9))
    )
    assert data.statistics() == ((2.0, 0.0), (1.0, 1.0))


@pytest.mark.parametrize(
    ("rows", "columns", "words"),
    [
        ([[1.0, 9.0]], Columns(("a", "b"), (0, 9)), "must have whole ids from 0 to 8 in the column `b`"),
        ([[1.0, 0.5]], Columns(("a", "b"), (0, 9)), "must have whole ids from 0 to 8 in the column `b`"),
        ([[1.0, -1.0]], Columns(("a", "b"), (0, 9)), "must have whole ids from 0 to 8 in the column `b`"),
        ([[1.0, 1.0]], Columns(("a",), (0,)), "must have rows of the 1 columns it names"),
    ],
)
def test_data_that_contradict_their_columns_are_refused(rows, columns, words, monkeypatch):
    from leaktight.data import RareDigit

    batch = Batch(torch.tensor(rows * 2), torch.tensor([0, 1]))
    monkeypatch.setattr(RareDigit, "read", lambda self: Data(batch, batch, 2, columns=columns))
    monkeypatch.setattr(RareDigit, "stamp", lambda self: (words, str(rows)))
    with pytest.raises(InvalidValue, match=words):
        RareDigit().load()
