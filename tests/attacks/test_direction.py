"""The direction attack: exact for a linear top, however sure the model is."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from leaktight.attacks import Direction, GradientNorm
from leaktight.core.threat import Hints, Knows
from leaktight.statistics.auc import auc


@given(seed=st.integers(0, 2**31), share=st.sampled_from([0.02, 0.3, 0.5, 0.98]), width=st.integers(1, 64))
def test_a_linear_top_gives_every_label_away(seed, share, width):
    rng = torch.Generator().manual_seed(seed)
    labels = torch.rand(100, generator=rng) < share
    labels[:3] = torch.tensor([True, True, False])
    # g = (p - y) w, the same w for all.
    gap = torch.sigmoid(3 * torch.randn(100, generator=rng)) - labels.float()
    rows = gap[:, None] * (torch.randn(width, generator=rng) + 0.1)
    scores = Direction().score(rows, Hints(torch.tensor([0]), torch.tensor([1])))
    assert torch.allclose(scores, torch.where(labels, 1.0, -1.0), atol=1e-4)
    assert auc(scores[1:], labels[1:]) == 1.0


def test_it_is_the_cosine():
    rng = torch.Generator().manual_seed(1)
    rows = torch.randn(30, 7, generator=rng)
    scores = Direction().score(rows, Hints(torch.tensor([4, 9]), torch.tensor([0, 1])))
    assert torch.allclose(scores, torch.cosine_similarity(rows, rows[9:10].expand_as(rows)), atol=1e-6)


def test_lengths_do_not_matter():
    rng = torch.Generator().manual_seed(2)
    rows, lengths = torch.randn(30, 7, generator=rng), torch.rand(30, 1, generator=rng) + 0.01
    known = Hints(torch.tensor([3]), torch.tensor([1]))
    assert torch.allclose(Direction().score(rows, known), Direction().score(rows * lengths, known), atol=1e-5)
    assert not torch.allclose(GradientNorm().score(rows, known), GradientNorm().score(rows * lengths, known))


def test_only_the_first_known_positive_is_used():
    hints = Hints(torch.tensor([5, 8, 2, 7]), torch.tensor([0, 1, 1, 0]))
    assert Direction().used_positions(hints).tolist() == [8]
    assert Direction().needs == {Knows.HINTS}


def test_without_a_known_positive_there_is_no_score():
    assert Direction().score(torch.ones(3, 2), Hints(torch.tensor([1]), torch.tensor([0]))) is None
