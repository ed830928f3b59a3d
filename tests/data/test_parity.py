"""Odd or even, with a property that the task does not tell."""

from __future__ import annotations

import pytest
import torch
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

from leaktight.data import Digits, Parity


@pytest.mark.parametrize("size", [8, 32])
def test_the_pictures_are_the_digits_and_both_questions_are_answered_by_them(size):
    digits, data = Digits(size=size).load(), Parity(size=size).load()
    assert data.shape == (1, size, size)
    for ours, theirs in ((data.train, digits.train), (data.test, digits.test)):
        assert torch.equal(ours.inputs, theirs.inputs)
        assert [data.names[label] for label in ours.labels] == ["odd" if digit % 2 else "even" for digit in theirs.labels]
        assert ours.properties.tolist() == [int(digit in (6, 7, 8, 9)) for digit in theirs.labels]


def test_resizing_is_that_of_the_digits():
    data = Parity(size=16, resize="nearest").load()
    assert torch.equal(data.test.inputs, Digits(size=16, resize="nearest").load().test.inputs)


def test_the_task_tells_as_little_of_the_property_as_the_docstring_says():
    data = Parity().load()
    labels = torch.cat([data.train.labels, data.test.labels]).float()
    properties = torch.cat([data.train.properties, data.test.properties]).float()
    assert len(labels) == len(load_digits().target) == 1797
    assert round(torch.corrcoef(torch.stack([labels, properties]))[0, 1].item(), 3) == -0.002
    assert [round(properties[labels == label].mean().item(), 2) for label in (0, 1)] == [0.4, 0.4]
    assert round(labels.mean().item(), 2) == 0.5


def test_both_questions_can_be_answered_from_the_pictures():
    data = Parity().load()
    for train, test in ((data.train.labels, data.test.labels), (data.train.properties, data.test.properties)):
        judge = LogisticRegression(max_iter=2000).fit(data.train.inputs.flatten(1), train)
        assert judge.score(data.test.inputs.flatten(1), test) > 0.8


def test_a_side_is_from_8_to_64(says):
    with says("The `size` of parity must be at least 8. Got 4 instead"):
        Parity(size=4)
