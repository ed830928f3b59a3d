"""The AUC of random scores: against counting all orders, against drawing, and where it turns normal."""

import itertools
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from leaktight.core.errors import InvalidValue
from leaktight.metrics import null_auc as module
from leaktight.metrics.null_auc import null_auc, null_quantile
from leaktight.statistics.auc import auc


def counted(positives, negatives):
    """Return the AUC of every order of so many positives and negatives."""
    total = positives + negatives
    found = []
    for places in itertools.combinations(range(total), positives):
        labels = torch.zeros(total)
        labels[list(places)] = 1
        found.append(auc(torch.arange(total).float(), labels))
    return torch.tensor(found, dtype=torch.float64)


@pytest.mark.parametrize(("positives", "negatives"), [(1, 1), (1, 6), (2, 2), (3, 4), (5, 3), (6, 6)])
def test_all_orders_are_counted(positives, negatives):
    values, weights = null_auc(positives, negatives)
    every = counted(positives, negatives)
    for value, weight in zip(values.tolist(), weights.tolist(), strict=True):
        assert weight == pytest.approx(((every - value).abs() < 1e-9).double().mean().item(), abs=1e-12)


@given(positives=st.integers(1, 2000), negatives=st.integers(1, 2000))
def test_mean_and_variance_are_those_of_mann_and_whitney(positives, negatives):
    values, weights = null_auc(positives, negatives)
    assert weights.sum().item() == pytest.approx(1)
    assert (weights >= 0).all()
    assert (values.diff() >= 0).all()
    mean = (values * weights).sum().item()
    assert mean == pytest.approx(0.5, abs=1e-9)
    variance = ((values - mean) ** 2 * weights).sum().item()
    assert variance == pytest.approx((positives + negatives + 1) / (12 * positives * negatives), rel=0.02)


def test_where_it_turns_normal_the_two_agree(monkeypatch):
    # 26 + 26 is the last square that is counted.
    exact = [null_quantile([(26, 26)], share) for share in (0.05, 0.25, 0.75, 0.95)]
    monkeypatch.setattr(module, "_EXACT", 0)
    null_auc.cache_clear()
    normal = [null_quantile([(26, 26)], share) for share in (0.05, 0.25, 0.75, 0.95)]
    null_auc.cache_clear()
    assert exact == pytest.approx(normal, abs=2e-3)
    assert exact != normal


@pytest.mark.parametrize("size", [(25, 231), (2, 40), (300, 700)])
@pytest.mark.parametrize("signed", [True, False])
@pytest.mark.parametrize("share", [0.5, 0.95])
def test_a_quantile_is_what_random_scores_reach(size, signed, share):
    rng = torch.Generator().manual_seed(0)
    labels = torch.arange(sum(size)) < size[0]
    drawn = torch.tensor([auc(torch.rand(sum(size), generator=rng), labels) for _ in range(2000)])
    reached = torch.quantile(drawn if signed else 0.5 + (drawn - 0.5).abs(), share).item()
    assert null_quantile([size] * 3, share, signed=signed) == pytest.approx(reached, abs=0.02)


def test_steps_of_other_sizes_are_mixed():
    small, large = (null_quantile([size], 0.95) for size in ((3, 30), (300, 3000)))
    assert large < null_quantile([(3, 30), (300, 3000)], 0.95) < small


def test_the_fewer_the_positives_the_higher_is_chance_without_a_sign():
    levels = [null_quantile([(count, 1000)], 0.5, signed=False) for count in (1, 2, 10, 100, 1000)]
    assert levels == sorted(levels, reverse=True)
    assert levels[0] == pytest.approx(0.75, abs=1e-3)
    assert levels[-1] == pytest.approx(0.5 + 0.6745 * math.sqrt(2001 / 12e6), abs=1e-3)
    assert null_quantile([(1, 1)], 0.5, signed=False) == 1.0


def test_one_class_alone_has_no_auc():
    with pytest.raises(InvalidValue, match="Got 0 positives and 5 negatives"):
        null_auc(0, 5)
