from __future__ import annotations

import re
from typing import Literal

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from leaktight.core import registry
from leaktight.core.errors import InvalidValue, LeaktightError
from leaktight.core.random import stream
from leaktight.data import ByClass, Dirichlet, Equal, Partition

KINDS = [Equal(), ByClass(), Dirichlet(), Dirichlet(alpha=1e-3), Dirichlet(alpha=100.0)]
some_labels = st.lists(st.integers(0, 6), min_size=1, max_size=60).map(torch.tensor)


def counts(labels: torch.Tensor, parts: list[torch.Tensor]) -> np.ndarray:
    classes = int(labels.max()) + 1
    return np.array([torch.bincount(labels[part], minlength=classes).tolist() for part in parts])


@pytest.mark.parametrize("partition", KINDS, ids=str)
@settings(deadline=None, max_examples=40)
@given(labels=some_labels, data=st.data())
def test_parts_are_disjoint_complete_and_never_empty(partition, labels, data):
    parts = data.draw(st.integers(1, len(labels)))
    split = partition.split(labels, parts, stream(0, "test"))
    assert len(split) == parts
    assert min(map(len, split)) >= 1
    assert sorted(torch.cat(split).tolist()) == list(range(len(labels)))
    assert all(part.dtype == torch.int64 and (part.diff() > 0).all() for part in split)


@pytest.mark.parametrize("partition", KINDS, ids=str)
def test_same_stream_same_parts(partition):
    labels = torch.arange(200) % 7
    one, two, other = (partition.split(labels, 5, stream(seed, "p")) for seed in (1, 1, 2))
    assert all(map(torch.equal, one, two))
    assert not all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("partition", KINDS, ids=str)
@pytest.mark.parametrize("parts", [0, -1, 11])
def test_too_many_or_too_few_participants(partition, parts, says):
    with says("number of participants must be from 1 to the 10 examples", f"Got {parts}"):
        partition.split(torch.arange(10) % 2, parts, stream(0))


@settings(deadline=None, max_examples=40)
@given(labels=some_labels, data=st.data())
def test_equal_parts_differ_by_one_at_most_in_total_and_in_each_class(labels, data):
    parts = data.draw(st.integers(1, len(labels)))
    table = counts(labels, Equal().split(labels, parts, stream(0)))
    assert np.ptp(table.sum(1)) <= 1
    assert np.ptp(table, axis=0).max() <= 1


def test_by_class_is_disjoint_when_the_classes_suffice():
    labels = torch.arange(300) % 10
    table = counts(labels, ByClass(classes_each=2).split(labels, 5, stream(0)))
    assert (np.count_nonzero(table, axis=1) == 2).all()
    assert (np.count_nonzero(table, axis=0) == 1).all()


@pytest.mark.parametrize(("parts", "each"), [(10, 2), (7, 3), (5, 10), (20, 1), (3, 4)])
def test_by_class_gives_everyone_as_many_classes_as_asked(parts, each):
    labels = torch.arange(1000) % 10
    table = counts(labels, ByClass(classes_each=each).split(labels, parts, stream(3)))
    assert (np.count_nonzero(table, axis=1) == each).all()
    owners = np.count_nonzero(table, axis=0)
    assert owners.min() >= 1
    assert np.ptp(owners) <= 1
    for column in table.T:
        assert np.ptp(column[column > 0]) <= 1


@pytest.mark.parametrize(("parts", "shares"), [(5, {2}), (4, {2, 3}), (3, {3, 4}), (10, {1}), (1, {10}), (15, {1})])
def test_by_class_deals_all_classes_evenly_by_default(parts, shares):
    labels = torch.arange(300) % 10
    table = counts(labels, ByClass().split(labels, parts, stream(0)))
    assert set(np.count_nonzero(table, axis=1).tolist()) == shares
    if parts <= 10:
        assert (np.count_nonzero(table, axis=0) == 1).all()


def test_by_class_gives_a_large_class_more_owners():
    labels = torch.tensor([0] * 90 + [1] * 10)
    table = counts(labels, ByClass(classes_each=1).split(labels, 10, stream(0)))
    assert np.count_nonzero(table, axis=0).tolist() == [9, 1]


def test_by_class_never_leaves_anyone_with_nothing_on_tiny_classes():
    labels = torch.tensor([0, 1, 1, 1, 1, 1])
    table = counts(labels, ByClass(classes_each=1).split(labels, 6, stream(0)))
    assert table.sum(1).tolist() == [1] * 6


@pytest.mark.parametrize(("parts", "each"), [(2, 4), (3, 11)])
def test_by_class_refuses_what_leaves_classes_without_owner(parts, each, says):
    with says(
        "`classes_each` of by_class must be from", "to 10", f"{parts} participants and 10 classes", f"Got {each}"
    ):
        ByClass(classes_each=each).split(torch.arange(100) % 10, parts, stream(0))


def test_dirichlet_shares_have_the_stated_mean_and_variance():
    classes, size, parts, alpha = 400, 500, 5, 0.9
    labels = torch.arange(classes).repeat_interleave(size)
    shares = counts(labels, Dirichlet(alpha=alpha).split(labels, parts, stream(0))) / size
    np.testing.assert_allclose(shares.mean(1), 1 / parts, atol=0.03)
    variance = (parts - 1) / (parts**2 * (parts * alpha + 1))
    np.testing.assert_allclose(shares.var(1).mean(), variance, rtol=0.1)


def test_dirichlet_extremes():
    labels = torch.arange(2000) % 10
    even = counts(labels, Dirichlet(alpha=1e9).split(labels, 4, stream(0)))
    assert np.ptp(even) <= 1
    skewed = counts(labels, Dirichlet(alpha=1e-4).split(labels, 4, stream(0)))
    assert (skewed.max(0) >= 199).all()


@settings(deadline=None, max_examples=30)
@given(st.floats(min_value=5e-324, max_value=1e308, exclude_min=False))
def test_dirichlet_of_any_concentration(alpha):
    split = Dirichlet(alpha=alpha).split(torch.arange(40) % 3, 7, stream(0))
    assert sum(map(len, split)) == 40
    assert min(map(len, split)) >= 1


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (lambda: Dirichlet(alpha=0), ("`alpha` of dirichlet must be above 0", "Got 0")),
        (lambda: Dirichlet(alpha=float("nan")), ("`alpha` of dirichlet", "finite")),
        (lambda: ByClass(classes_each=0), ("`classes_each` of by_class must be at least 1",)),
        (lambda: Partition.model_validate({"kind": "dirichlett"}), ("Did you mean `dirichlet`?",)),
    ],
)
def test_wrong_settings(made, words, says):
    with says(*words):
        made()


def test_partitions_go_to_json_and_back():
    for partition in KINDS:
        assert Partition.model_validate(partition.to_dict()) == partition


@pytest.mark.parametrize(
    "dealt",
    [
        [torch.tensor([0, 1]), torch.tensor([], dtype=torch.long)],
        [torch.tensor([0]), torch.tensor([0])],
        [torch.tensor([0]), torch.tensor([2])],
        [torch.tensor([0, 1])],
        [],
    ],
    ids=["empty", "twice", "outside", "too few", "none"],
)
def test_a_plugin_that_deals_badly_is_caught(dealt):
    class Careless(Partition):
        kind: Literal["test_careless"] = "test_careless"

        def deal(self, labels, parts, rng):
            return dealt

    try:
        with pytest.raises(LeaktightError, match="test_careless must give each of 2 participants"):
            Careless().split(torch.tensor([0, 1]), 2, stream(0))
    finally:
        registry._classes["partition"].pop("test_careless")


def test_by_class_gives_everyone_the_classes_that_were_named():
    labels = torch.arange(120) % 4
    table = counts(labels, ByClass(owned=((0, 1, 2), (2,), (3, 2))).split(labels, 3, stream(0)))
    assert [[int(number) for number in row] for row in table] == [[30, 30, 10, 0], [0, 0, 10, 0], [0, 0, 10, 30]]


def test_equal_classes_are_dealt_out_like_cards():
    labels = torch.tensor([0] * 7 + [1] * 4)
    table = counts(labels, ByClass(owned=((0, 1), (1, 0))).split(labels, 2, stream(0)))
    assert sorted(int(row[0]) for row in table) == [3, 4]
    assert [int(row[1]) for row in table] == [2, 2]


def test_named_classes_leave_chance_only_which_examples():
    labels = torch.arange(40) % 4
    owned = ByClass(owned=((0, 1), (1, 2, 3)))
    one, other = owned.split(labels, 2, stream(0)), owned.split(labels, 2, stream(1))
    assert [set(labels[part].tolist()) for part in one] == [set(labels[part].tolist()) for part in other]
    assert not torch.equal(one[0], other[0])


@pytest.mark.parametrize(
    ("owned", "sentence"),
    [
        (
            ((0, 1), (2,)),
            "must give every class of the data to somebody, and no other. Got no owner of class 3 instead.",
        ),
        (((0, 1), (2, 3, 7)), "Got no example of class 7 instead."),
        (((0, 1, 2, 3),), "must name the classes of each of 2 participants. Got 1 instead."),
    ],
)
def test_named_classes_must_be_those_of_the_data(owned, sentence):
    with pytest.raises(InvalidValue, match=re.escape(sentence)):
        ByClass(owned=owned).split(torch.arange(40) % 4, 2, stream(0))


def test_a_class_has_at_most_as_many_owners_as_examples():
    with pytest.raises(InvalidValue, match=re.escape("Got 3 for the 2 of class 1 instead.")):
        ByClass(owned=((0, 1), (0, 1), (0, 1))).split(torch.tensor([0, 0, 0, 1, 1]), 3, stream(0))


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"owned": ((0,), (1,)), "classes_each": 1}, "must be left out where `owned` says it"),
        (
            {"owned": ((0,), ())},
            "at least one class of each participant, and each once. Got () for participant 1 instead.",
        ),
        ({"owned": ((0, 0), (1,))}, "Got (0, 0) for participant 0 instead."),
    ],
)
def test_named_classes_are_checked(settings, sentence):
    with pytest.raises(InvalidValue, match=re.escape(sentence)):
        ByClass(**settings)


def test_the_names_go_to_json_and_back_and_are_not_there_where_chance_chooses():
    owned = ByClass(owned=((0, 1), (2,)))
    assert ByClass.model_validate(owned.to_dict()) == owned
    assert "owned" not in ByClass(classes_each=2).to_dict()
