"""AUC and its interval, against scikit-learn, against all pairs, and against repeated draws."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from leaktight.core.errors import InvalidValue
from leaktight.statistics.auc import auc, delong

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
