from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from leaktight.data.column import Numbers, Words, fit_column, is_missing


def learn(cells, categorical=False, fill=False, most_words=200):
    return fit_column("c", cells, categorical, fill, most_words)


@settings(deadline=None, max_examples=40)
@given(st.lists(st.floats(-1e6, 1e6).map(lambda value: round(value, 3)), min_size=2, max_size=30))
@example([51.219] * 5)
def test_numbers_are_standardised_as_scikit_learn_does(values):
    cells = [str(value) for value in values]
    ours = learn(cells).encode(cells)[:, 0]
    if np.ptp(values) == 0:
        np.testing.assert_array_equal(ours, 0)
    else:
        theirs = StandardScaler().fit_transform(np.array(values)[:, None])[:, 0]
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4)


@settings(deadline=None, max_examples=40)
@given(st.lists(st.sampled_from(["cook", "clerk", "x y", "Ünder"]), min_size=1, max_size=20), st.data())
def test_words_are_encoded_as_scikit_learn_does(cells, data):
    test = data.draw(st.lists(st.sampled_from(["cook", "clerk", "pilot"]), min_size=1, max_size=5))
    judge = OneHotEncoder(handle_unknown="ignore", sparse_output=False).fit(np.array(cells)[:, None])
    np.testing.assert_array_equal(learn(cells).encode(test), judge.transform(np.array(test)[:, None]))


def test_one_word_makes_a_column_of_words():
    assert isinstance(learn(["1", "2", "three"]), Words)
    assert isinstance(learn(["1", "-2.5e3", " 4"]), Numbers)


def test_numbers_can_be_words_if_asked():
    assert learn(["2", "1", "2"], categorical=True).encode(["2", "1"]).tolist() == [[0, 1], [1, 0]]


@pytest.mark.parametrize("cell", ["", "?", "NA", "NaN", "nan", "n/a", "NULL"])
def test_missing_cells_are_refused_or_filled(cell, says):
    assert is_missing(cell)
    with says("column `c`", "Got 2 missing", "set `missing` to `fill`"):
        learn(["1", cell, cell, "3"]).encode(["1", cell, cell, "3"])
    assert learn(["1", cell, "3"], fill=True).encode(["1", cell, "3"]).tolist() == [[-1], [0], [1]]
    assert learn(["a", cell], fill=True).encode(["a", cell]).tolist() == [[1], [0]]


@pytest.mark.parametrize("cell", ["0", "none", "no", "-"])
def test_other_cells_are_not_missing(cell):
    assert not is_missing(cell)


def test_the_training_cells_alone_decide():
    column = learn(["0", "10"])
    assert column.encode(["20"]).tolist() == [[3]]


def test_a_constant_column_becomes_zero_and_keeps_its_units():
    column = learn(["0.1"] * 7)
    assert np.abs(column.encode(["0.1"])).max() < 1e-6
    assert column.encode(["2.1"])[0, 0] == pytest.approx(2)


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (lambda: learn(["1", "2"]).encode(["x"]), ("must hold numbers, as in the training rows", "'x'")),
        (lambda: learn(["1", "inf"]), ("finite numbers", "infinite")),
        (lambda: learn(["", ""], fill=True), ("a value in some training row",)),
        (lambda: learn(["a", "b", "c"], most_words=2), ("at most 2 different words", "Got 3", "`most_words`")),
    ],
)
def test_wrong_cells(act, words, says):
    with says("column `c`", *words):
        act()


@pytest.mark.parametrize("words", ["ids", "hashed"])
def test_words_as_ids_are_one_column_and_0_is_unknown_or_missing(words):
    column = fit_column("c", ["cook", "clerk", "cook"], False, True, 2, words=words, buckets=5)
    encoded = column.encode(["cook", "cook", "", "clerk"])
    assert encoded.shape == (4, 1)
    assert encoded[0] == encoded[1] != 0
    assert encoded[2] == 0
    assert encoded.max() < column.ids[0] == {"ids": 3, "hashed": 6}[words]


def test_indexed_words_are_numbered_from_1_in_their_order_and_unknown_ones_are_0():
    column = fit_column("c", ["b", "a", "c"], False, False, 2, words="ids")
    assert column.encode(["a", "b", "c", "d"])[:, 0].tolist() == [1, 2, 3, 0]


@settings(deadline=None)
@given(st.lists(st.text(min_size=1), min_size=1), st.integers(1, 1000))
def test_hashed_words_are_ids_that_nothing_but_the_word_decides(cells, buckets):
    column = fit_column("c", cells, True, True, 2, words="hashed", buckets=buckets)
    encoded = column.encode(cells)
    assert ((encoded >= 0) & (encoded <= buckets)).all()
    assert [int(found > 0) for found in encoded[:, 0]] == [int(not is_missing(cell)) for cell in cells]
    again = fit_column("c", ["something else"], True, True, 2, words="hashed", buckets=buckets).encode(cells)
    np.testing.assert_array_equal(encoded, again)


def test_as_many_words_as_there_are_may_become_ids():
    cells = [str(number) for number in range(50)]
    assert fit_column("c", cells, True, False, 2, words="ids").ids == (51,)


@given(st.lists(st.integers(-(10**6), 10**6), min_size=1))
def test_logarithms_keep_sign_and_order_and_are_standardised_only_if_asked(values):
    cells = [str(value) for value in values]
    plain = fit_column("c", cells, False, False, 2, logarithm=True, standardise=False).encode(cells)[:, 0]
    np.testing.assert_allclose(plain, np.sign(values) * np.log1p(np.abs(values)), rtol=1e-6)
    moved = fit_column("c", cells, False, False, 2, logarithm=True).encode(cells)[:, 0]
    assert abs(moved.mean()) < 1e-3
