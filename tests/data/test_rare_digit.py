"""One digit against the rest: the same pictures, another question."""

from __future__ import annotations

import pytest
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from leaktight.data import Digits, RareDigit


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
