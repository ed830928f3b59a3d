"""Attacks that compare with known examples: with which, how, and what happens without any."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from leaktight.attacks import Direction, FewHints, GradientNorm, InnerProduct
from leaktight.attacks.direction import KnownPositive
from leaktight.core.errors import InvalidValue
from leaktight.core.threat import Hints, Knows
from leaktight.statistics.auc import auc

ROWS = torch.tensor([[1.0, 0.0], [0.0, 2.0], [0.0, 3.0], [1.0, 1.0]])


class First(KnownPositive):
    def compare(self, rows, known):
        return rows[:, 0] * 0 + known.sum()


@pytest.fixture
def first():
    return First.model_construct(kind="first", layer="cut")


def test_the_first_known_positive_is_compared_with_and_not_scored(first):
    hints = Hints(torch.tensor([0, 2, 1]), torch.tensor([0, 1, 1]))
    assert first.used_positions(hints).tolist() == [2]
    assert first.score(ROWS, hints).tolist() == [3.0] * 4


@pytest.mark.parametrize("labels", [[0, 0], []])
def test_without_one_nothing_is_scored(first, labels):
    hints = Hints(torch.arange(len(labels)), torch.tensor(labels, dtype=torch.long))
    assert first.score(ROWS, hints) is None
    assert not len(first.used_positions(hints))


@pytest.mark.parametrize("attack", [Direction(), InnerProduct()], ids=str)
def test_who_compares_needs_hints(attack):
    assert isinstance(attack, KnownPositive)
    assert attack.needs == frozenset({Knows.HINTS})


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


@pytest.mark.parametrize("attack", [Direction(), InnerProduct()], ids=str)
def test_only_the_first_known_positive_is_used(attack):
    assert attack.used_positions(Hints(torch.tensor([5, 8, 2, 7]), torch.tensor([0, 1, 1, 0]))).tolist() == [8]


@pytest.mark.parametrize("attack", [Direction(), InnerProduct()], ids=str)
def test_without_a_known_positive_there_is_no_score(attack):
    assert attack.score(rows(), Hints(torch.tensor([1]), torch.tensor([0]))) is None


KNOWN = Hints(torch.tensor([3]), torch.tensor([1]))


def rows(seed=0):
    return torch.randn(40, 6, generator=torch.Generator().manual_seed(seed))


def test_it_is_the_inner_product_with_the_known_positive():
    made = rows()
    assert torch.allclose(InnerProduct().score(made, KNOWN), (made * made[3]).sum(1), atol=1e-5)


def test_it_is_cosine_times_both_norms():
    made = rows(1)
    cosine, norm = Direction().score(made, KNOWN), GradientNorm().score(made, KNOWN)
    assert torch.allclose(InnerProduct().score(made, KNOWN), cosine * norm * norm[3], atol=1e-4)


def test_among_rows_of_one_direction_the_longer_is_first():
    made = torch.tensor([[-1.0, 0.0], [1.0, 0.0], [2.0, 0.0], [1.5, 0.0]])
    assert InnerProduct().score(made, KNOWN).argsort().tolist() == [0, 1, 3, 2]


HINTS = Hints(torch.tensor([9, 4, 1, 6, 0, 2, 3]), torch.tensor([0, 1, 1, 0, 1, 1, 0]))


def test_one_positive_alone_is_the_direction_attack():
    assert torch.allclose(FewHints(hints=1).score(rows(), HINTS), Direction().score(rows(), HINTS), atol=1e-6)


@pytest.mark.parametrize(("hints", "negatives"), [(2, 0), (3, 1), (5, 5)])
def test_it_is_the_projection_on_the_difference_of_mean_directions(hints, negatives):
    made = rows(1)
    each = made / made.norm(dim=1, keepdim=True)
    way = each[[4, 1, 0, 2][:hints]].mean(0)
    if negatives:
        way = way - each[[9, 6, 3][:negatives]].mean(0)
    scores = FewHints(hints=hints, negatives=negatives).score(made, HINTS)
    assert torch.allclose(scores, each @ way, atol=1e-6)


@pytest.mark.parametrize(
    ("hints", "negatives", "used"),
    [(1, 0, [4]), (2, 1, [1, 4, 9]), (5, 0, [0, 1, 2, 4]), (5, 5, [0, 1, 2, 3, 4, 6, 9])],
)
def test_what_is_used_is_not_more_than_is_known(hints, negatives, used):
    assert sorted(FewHints(hints=hints, negatives=negatives).used_positions(HINTS).tolist()) == used


def test_more_hints_average_noise_away():
    rng = torch.Generator().manual_seed(3)
    values = {1: [], 5: []}
    for _ in range(40):
        labels = torch.rand(300, generator=rng) < 0.2
        noisy = torch.where(labels, 1.0, -1.0)[:, None] + 3 * torch.randn(300, 16, generator=rng)
        known = torch.cat([labels.nonzero().flatten()[:5], (~labels).nonzero().flatten()[:5]])
        for count, found in values.items():
            attack = FewHints(hints=count, negatives=count)
            scores = attack.score(noisy, Hints(known, labels[known].long()))
            scored = torch.ones(300, dtype=torch.bool)
            scored[known] = False
            found.append(auc(scores[scored], labels[scored]))
    assert sum(values[5]) / 40 > sum(values[1]) / 40 + 0.05


def test_negatives_alone_are_not_enough():
    assert FewHints(negatives=3).score(rows(), Hints(torch.tensor([1]), torch.tensor([0]))) is None
    assert FewHints().needs == {Knows.HINTS}


@pytest.mark.parametrize(("settings", "told"), [({"hints": 0}, "at least 1"), ({"negatives": 6}, "at most 5")])
def test_more_than_a_threat_model_grants_cannot_be_asked_for(settings, told):
    with pytest.raises(InvalidValue, match=told):
        FewHints(**settings)
