from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leaktight.data.labels import as_ids, in_range, match_names, number


@pytest.mark.parametrize(
    ("labels", "ids"),
    [
        (np.array([3, 1], np.uint8), [3, 1]),
        (np.array([[3], [1]]), [3, 1]),
        (np.array([3.0, -1.0]), [3, -1]),
        (np.array([True, False]), [1, 0]),
        (np.array(["10", "9"]), [10, 9]),
        (np.array(["10", "nine"]), ["10", "nine"]),
        (np.array(["1.5", "2"]), ["1.5", "2"]),
        (np.array(["99999999999999999999", "2"]), ["99999999999999999999", "2"]),
    ],
)
def test_ids_of_every_usual_kind(labels, ids):
    assert as_ids(labels, "It").tolist() == ids


def test_uint8_labels_do_not_wrap_around():
    assert as_ids(np.array([255], np.uint8), "It").dtype == np.int64


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        (np.array([0.5]), ("It must be whole numbers or words", "fractions or NaN")),
        (np.array([np.nan]), ("fractions or NaN",)),
        (np.eye(3), ("one number or word per example", "(3, 3)")),
        (np.array(7), ("one number or word per example", "()")),
        (np.array([1j]), ("complex128",)),
        (np.array([b"a"]), ("|S1",)),
    ],
)
def test_other_labels_are_refused(labels, words, says):
    with says(*words):
        as_ids(labels, "It")


@settings(deadline=None, max_examples=50)
@given(st.lists(st.integers(-5, 300), min_size=1, max_size=30), st.data())
def test_numbering_can_be_undone(train, data):
    test = data.draw(st.lists(st.sampled_from(train), max_size=10))
    train_labels, test_labels, names = number(np.array(train), np.array(test, dtype=np.int64), "It")
    assert [int(names[label]) for label in train_labels] == train
    assert [int(names[label]) for label in test_labels] == test
    assert sorted(set(train_labels.tolist())) == list(range(len(names)))
    assert list(map(int, names)) == sorted(set(train))


def test_numbering_of_words_is_alphabetical():
    train, test, names = number(np.array(["dog", "cat", "dog"]), np.array(["cat"]), "It")
    assert (train.tolist(), test.tolist(), names) == ([1, 0, 1], [0], ("cat", "dog"))


@pytest.mark.parametrize(
    ("positive", "names", "train"), [("no", ("yes", "no"), [1, 0, 1]), ("yes", ("no", "yes"), [0, 1, 0])]
)
def test_the_positive_label_of_two_is_numbered_1(positive, names, train):
    found = number(np.array(["no", "yes", "no"]), np.array(["yes"]), "It", positive)
    assert (found[0].tolist(), found[2]) == (train, names)
    assert names[found[1][0]] == "yes"


@pytest.mark.parametrize(
    ("labels", "positive", "words"),
    [
        ([0, 1], "2", ("It must have two labels of which `2` is the positive one", "Got 2: `0`, `1`.")),
        ([0, 1, 2], "1", ("Got 3: `0`, `1`, `2`.",)),
        ([*range(9)], "1", ("Got 9: `0`, `1`, `2`, `3`, `4`, ...",)),
        ([1], "1", ("Got 1: `1`.",)),
    ],
)
def test_a_positive_label_must_be_one_of_two(labels, positive, words, says):
    with says(*words):
        number(np.array(labels), np.array(labels[:1]), "It", positive)


def test_a_label_that_only_the_test_data_have_is_named(says):
    with says("occur in training", "`7`, `9`"):
        number(np.array([1, 2]), np.array([2, 7, 9]), "It")


def test_words_in_one_part_and_numbers_in_the_other_meet_as_words(says):
    assert number(np.array(["1", "x"]), np.array([1]), "It")[1].tolist() == [0]
    with says("`3`"):
        number(np.array(["1", "x"]), np.array([3]), "It")


def test_in_range_keeps_good_labels_and_names_the_first_bad_one(says):
    assert in_range(np.array([0, 9], np.uint8), 10, "It").tolist() == [0, 9]
    with says("It must have labels from 0 to 9", "Got `10` at example 1"):
        in_range(np.array([0, 10, 11], np.uint8), 10, "It")
    with says("Got `-1` at example 0"):
        in_range(np.array([-1]), 10, "It")
    with says("Got `cat` at example 0"):
        in_range(np.array(["cat"]), 10, "It")


def test_names_fit_by_number_or_by_id_or_not_at_all():
    assert match_names(("6", "25"), ["bee", "couch"]) == ("bee", "couch")
    assert match_names(("2", "0"), ["a", "b", "c"]) == ("c", "a")
    assert match_names(("3",), ["a", "b", "c"]) is None
    assert match_names(("cat",), ["a", "b"]) is None
