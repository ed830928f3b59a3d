from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leaktight.data.selection import holdout, subset

some_labels = st.lists(st.integers(0, 5), min_size=2, max_size=80).map(np.array)


@settings(deadline=None, max_examples=50)
@given(some_labels, st.integers(1, 100))
def test_subset_has_the_asked_size_in_order_without_repeats(labels, count):
    index = subset(labels, count)
    assert len(index) == min(count, len(labels))
    assert (np.diff(index) > 0).all()
    assert index.min() >= 0
    assert index.max() < len(labels)


@settings(deadline=None, max_examples=50)
@given(some_labels, st.integers(1, 80), st.integers(1, 80))
def test_smaller_subsets_are_inside_larger_ones(labels, one, other):
    small, large = subset(labels, min(one, other)), subset(labels, max(one, other))
    assert set(small) <= set(large)


@pytest.mark.parametrize("count", [10, 37, 100, 500])
def test_subset_keeps_each_class_in_its_share(count):
    sizes = np.array([100, 200, 300, 400])
    labels = np.random.default_rng(0).permutation(np.repeat(np.arange(4), sizes))
    kept = np.bincount(labels[subset(labels, count)], minlength=4)
    assert np.abs(kept - count * sizes / sizes.sum()).max() <= 1


def test_subset_without_limit_is_everything():
    assert subset(np.array([3, 1, 2]), None).tolist() == [0, 1, 2]


def test_subset_is_not_simply_the_first_ones():
    labels = np.zeros(1000, dtype=int)
    assert 400 < subset(labels, 100).mean() < 600


def test_words_can_be_selected_too():
    labels = np.array(["cat", "dog"] * 50)
    assert np.unique(labels[subset(labels, 20)], return_counts=True)[1].tolist() == [10, 10]


@settings(deadline=None, max_examples=60)
@given(some_labels, st.floats(0.05, 0.95))
def test_holdout_is_disjoint_complete_and_leaves_every_class_in_training(labels, share):
    if len(np.unique(labels)) == len(labels):
        return
    train, test = holdout(labels, share)
    assert sorted([*train, *test]) == list(range(len(labels)))
    assert len(test) >= 1
    assert set(labels[train]) == set(labels)


def test_holdout_takes_the_share_of_each_class():
    labels = np.repeat(np.arange(3), [50, 100, 10])
    train, test = holdout(labels, 0.2)
    assert np.bincount(labels[test]).tolist() == [10, 20, 2]
    assert np.bincount(labels[train]).tolist() == [40, 80, 8]


def test_holdout_needs_two_of_a_kind(says):
    with says("two examples of some class", "Got 3 examples"):
        holdout(np.arange(3), 0.5)
