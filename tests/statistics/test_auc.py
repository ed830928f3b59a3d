"""AUC and its interval, against scikit-learn, against all pairs, and against repeated draws."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from leaktight.core.errors import InvalidValue
from leaktight.statistics.auc import auc, delong, delong_difference

SCORED = st.lists(st.tuples(st.integers(-3, 3), st.booleans()), min_size=2, max_size=40).filter(
    lambda pairs: len({positive for _, positive in pairs}) == 2
)


def tensors(pairs):
    return torch.tensor([float(score) for score, _ in pairs]), torch.tensor([positive for _, positive in pairs])


@settings(deadline=None)
@given(SCORED)
def test_the_auc_is_scikit_learn_s_ties_and_all(pairs):
    scores, positive = tensors(pairs)
    assert auc(scores, positive) == pytest.approx(roc_auc_score(positive, scores), abs=1e-12)


@settings(deadline=None)
@given(SCORED)
def test_turning_the_scores_around_turns_the_auc_around(pairs):
    scores, positive = tensors(pairs)
    assert auc(-scores, positive) == pytest.approx(1 - auc(scores, positive), abs=1e-12)


@settings(deadline=None)
@given(SCORED)
def test_delong_s_variance_is_that_of_all_pairs(pairs):
    scores, positive = tensors(pairs)
    ups, downs = scores[positive].double(), scores[~positive].double()
    wins = (ups[:, None] > downs).double() + 0.5 * (ups[:, None] == downs).double()
    value, (low, high) = delong(scores, positive)
    assert value == pytest.approx(wins.mean().item())
    if min(len(ups), len(downs)) < 2:
        assert (low, high) == (None, None)
        return
    spread = 1.959963985 * (wins.mean(1).var() / len(ups) + wins.mean(0).var() / len(downs)).sqrt().item()
    assert low == pytest.approx(max(0.0, value - spread), abs=1e-9)
    assert high == pytest.approx(min(1.0, value + spread), abs=1e-9)


def all_pairs(scores, positive):
    ups, downs = scores[positive].double(), scores[~positive].double()
    return (ups[:, None] > downs).double() + 0.5 * (ups[:, None] == downs).double()


def test_the_variance_of_a_difference_has_the_covariance_of_both():
    """By the matrices S10 and S01 of DeLong, DeLong and Clarke-Pearson."""
    generator = torch.Generator().manual_seed(0)
    positive = torch.arange(60) % 3 == 0
    one = torch.randn(60, generator=generator) + positive
    other = one + torch.randn(60, generator=generator)
    wins = [all_pairs(scores, positive) for scores in (one, other)]
    ups, downs = (torch.cov(torch.stack([each.mean(side) for each in wins])) for side in (1, 0))
    total = ups / 20 + downs / 40
    variance = (total[0, 0] + total[1, 1] - 2 * total[0, 1]).item()
    value, (low, high) = delong_difference(one, other, positive)
    assert value == pytest.approx(auc(one, positive) - auc(other, positive))
    assert (high - low) / 2 == pytest.approx(1.959963985 * variance**0.5)
    assert high - value == pytest.approx(value - low)
    _, (lower, higher) = delong_difference(one, other, positive, level=0.99)
    assert lower < low < high < higher


def test_scores_that_order_alike_do_not_differ():
    scores, positive = torch.arange(8.0), torch.arange(8) > 4
    assert delong_difference(scores, scores.exp(), positive) == (0.0, (0.0, 0.0))
    assert delong_difference(scores[4:6], -scores[4:6], positive[4:6]) == (1.0, (None, None))


def test_the_interval_covers_the_truth_as_often_as_it_says():
    """Normal scores one deviation apart have an AUC of Phi(1 / sqrt 2)."""
    truth = torch.special.ndtr(torch.tensor(0.5).sqrt()).item()
    generator = torch.Generator().manual_seed(0)
    positive = torch.arange(120) < 30
    covered = 0
    for _ in range(400):
        _, (low, high) = delong(torch.randn(120, generator=generator) + positive, positive)
        covered += low <= truth <= high
    assert 0.90 < covered / 400 < 0.99


@pytest.mark.parametrize(
    ("scores", "positive", "sentence"),
    [
        ([1.0, 2.0], [1, 1], "An AUC needs positives and negatives. Got 2 positives and 0 negatives"),
        ([1.0, 2.0], [0, 0], "An AUC needs positives and negatives. Got 0 positives and 2 negatives"),
        ([1.0], [0, 1], "needs one score for each of 2 examples. Got 1 instead"),
        ([1.0, float("nan")], [0, 1], "needs finite scores"),
    ],
)
def test_what_has_no_auc_is_said(scores, positive, sentence):
    with pytest.raises(InvalidValue, match=sentence):
        auc(torch.tensor(scores), torch.tensor(positive))


def test_a_level_is_between_0_and_1():
    with pytest.raises(InvalidValue, match="The `level` of an interval must be a number in"):
        delong(torch.tensor([0.0, 1.0]), torch.tensor([0, 1]), level=1.0)
