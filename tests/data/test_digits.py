"""The digits' two questions, odd or even and one digit against the rest: the same pictures, other labels."""

from __future__ import annotations

import pytest
import torch
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from leaktight.data import Digits, Parity, RareDigit


@pytest.mark.parametrize("size", [8, 32])
def test_the_pictures_are_the_digits_and_both_questions_are_answered_by_them(size):
    digits, data = Digits(size=size).load(), Parity(size=size).load()
    assert data.shape == (1, size, size)
    for ours, theirs in ((data.train, digits.train), (data.test, digits.test)):
        assert torch.equal(ours.inputs, theirs.inputs)
        assert [data.names[label] for label in ours.labels] == [
            "odd" if digit % 2 else "even" for digit in theirs.labels
        ]
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


def test_both_questions_of_parity_can_be_answered_from_the_pictures():
    data = Parity().load()
    for train, test in ((data.train.labels, data.test.labels), (data.train.properties, data.test.properties)):
        judge = LogisticRegression(max_iter=2000).fit(data.train.inputs.flatten(1), train)
        assert judge.score(data.test.inputs.flatten(1), test) > 0.8


def test_a_side_is_from_8_to_64(says):
    with says("The `size` of parity must be at least 8. Got 4 instead"):
        Parity(size=4)


@pytest.mark.parametrize("digit", range(10))
def test_a_tenth_is_positive(digit):
    data = RareDigit(digit=digit).load()
    digits = Digits().load()
    assert torch.equal(data.train.labels, (digits.train.labels == digit).long())
    assert torch.equal(data.test.labels, (digits.test.labels == digit).long())
    assert 0.08 < data.train.labels.float().mean() < 0.12
    assert data.names == ("other", str(digit))


def test_all_forms_show_the_same_pictures():
    numbers, levels, image = (RareDigit(form=form).load() for form in ("numbers", "levels", "image"))
    assert torch.equal(numbers.train.inputs, image.train.inputs.flatten(1))
    assert torch.equal(levels.train.inputs, numbers.train.inputs * 16)
    assert numbers.columns.names == levels.columns.names
    assert image.columns is None
    assert numbers.columns.numbers == levels.columns.categories == tuple(range(64))
    assert levels.train.inputs.max() == 16


@pytest.mark.parametrize(("digit", "low", "high"), [(8, 0.95, 0.98), (0, 0.99, 1.0)])
def test_the_question_is_as_hard_as_its_docstring_says(digit, low, high):
    data = RareDigit(digit=digit).load()
    judge = LogisticRegression(max_iter=2000).fit(data.train.inputs, data.train.labels)
    assert low <= roc_auc_score(data.test.labels, judge.decision_function(data.test.inputs)) <= high


def test_a_digit_is_from_0_to_9(says):
    with says("The `digit` of rare_digit must be at most 9. Got 10 instead"):
        RareDigit(digit=10)
