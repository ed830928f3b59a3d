"""Column rules: which setting reaches which column."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from leaktight.core.errors import InvalidValue
from leaktight.data.column import Hashed, Ids, Numbers, Words
from leaktight.data.column_rules import ColumnRules, describe, encode

HEADER = ["age", "clicks", "zip", "job"]
CELLS = np.array([["30", "0", "10", "cook"], ["40", "2", "20", "clerk"], ["50", "7", "10", "cook"]], dtype=object)


def test_each_column_is_learned_by_the_rules_that_name_it() -> None:
    rules = ColumnRules(categorical=("zip",), logarithm=("cl*",), words="ids")
    age, clicks, code, job = rules.learn(HEADER, CELLS)
    assert isinstance(age, Numbers)
    assert (age.mean, age.logarithm) == (40.0, False)
    assert isinstance(clicks, Numbers)
    assert clicks.logarithm
    assert clicks.mean == pytest.approx(np.log1p([0, 2, 7]).mean())
    assert (code, job) == (Ids("zip", False, ("10", "20")), Ids("job", False, ("clerk", "cook")))


def test_the_other_rules_hold_for_all_columns() -> None:
    rules = ColumnRules(missing="fill", words="hashed", buckets=7, standardise=False)
    age, *_, job = rules.learn(HEADER, CELLS)
    assert age == Numbers("age", True, 0.0, 1.0)
    assert job == Hashed("job", True, 7)
    assert isinstance(ColumnRules().learn(HEADER, CELLS)[-1], Words)


def test_too_many_words_and_unknown_columns_are_errors() -> None:
    rules = ColumnRules(most_words=2)
    three = np.array([["a"], ["b"], ["c"]], dtype=object)
    with pytest.raises(InvalidValue, match=r"The column `job` must have at most 2 different words. Got 3"):
        rules.learn(["job"], three)
    with pytest.raises(InvalidValue, match="`logarithm`"):
        ColumnRules(logarithm=("visits",)).learn(HEADER, CELLS)


def test_a_column_of_several_positions_is_described_by_each() -> None:
    columns = ColumnRules(categorical=("zip",)).learn(HEADER, CELLS)
    found = describe(columns)
    assert found.names == ("age", "clicks", "zip", "zip", "job", "job")
    assert found.ids == (0,) * 6
    assert encode(columns, CELLS).shape == (3, 6)
    assert torch.equal(encode(columns, CELLS)[:, 2:4], torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]))


def test_without_columns_there_are_rows_of_nothing() -> None:
    assert encode([], CELLS).shape == (3, 0)
