"""The attack without a hint: the axis is the leading eigenvector, and its sign means nothing."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from leaktight.attacks import Clustering, clustering
from leaktight.attacks.clustering import leading_direction
from leaktight.core.threat import Hints
from leaktight.statistics.auc import auc

NOBODY = Hints(torch.empty(0, dtype=torch.long), torch.empty(0, dtype=torch.long))


def spread(rows, axis, seed=0):
    """Return rows that spread much more along one axis than along others."""
    rng = torch.Generator().manual_seed(seed)
    way = torch.nn.functional.normalize(torch.randn(axis, generator=rng), dim=0)
    return torch.randn(rows, axis, generator=rng) + 10 * torch.randn(rows, 1, generator=rng) * way


@pytest.mark.parametrize("shape", [(200, 8), (20, 100), (50, 50), (5, 1), (1, 5)])
def test_the_axis_is_the_leading_right_singular_vector(shape):
    rows = spread(*shape)
    wanted = torch.linalg.svd(rows.double(), full_matrices=False).Vh[0].float()
    assert abs(leading_direction(rows) @ wanted) > 1 - 1e-4
    assert leading_direction(rows).norm().item() == pytest.approx(1, abs=1e-5)


def test_of_many_entries_evenly_spaced_rows_decide(monkeypatch):
    rows = spread(4000, 8)
    whole = leading_direction(rows)
    monkeypatch.setattr(clustering, "_ENTRIES", 800 * 8)
    assert torch.equal(leading_direction(rows), leading_direction(rows[::5]))
    assert abs(leading_direction(rows) @ whole) > 0.99


@given(seed=st.integers(0, 2**31), share=st.floats(0.01, 0.99), confident=st.floats(0.01, 10))
def test_a_linear_top_gives_every_label_away_but_not_which_is_which(seed, share, confident):
    rng = torch.Generator().manual_seed(seed)
    labels = torch.rand(100, generator=rng) < share
    labels[:2] = torch.tensor([True, False])
    gap = torch.sigmoid(confident * torch.randn(100, generator=rng).clamp(-1, 1)) - labels.float()
    rows = gap[:, None] * torch.nn.functional.normalize(torch.randn(16, generator=rng), dim=0)
    assert auc(Clustering().score(rows, NOBODY), labels) in (0.0, 1.0)


def test_the_guess_says_that_its_sign_is_unknown():
    assert not Clustering().signed
    assert Clustering().needs == frozenset()


def test_rows_of_zeros_tell_nothing():
    assert Clustering().score(torch.zeros(6, 3), NOBODY).tolist() == [0.0] * 6
    assert Clustering().score(torch.zeros(6, 0), NOBODY).tolist() == [0.0] * 6


def test_the_same_rows_give_the_same_scores_and_stay_as_they_are():
    rows = spread(100, 6)
    before = rows.clone()
    assert torch.equal(Clustering().score(rows, NOBODY), Clustering().score(rows, NOBODY))
    assert torch.equal(rows, before)
