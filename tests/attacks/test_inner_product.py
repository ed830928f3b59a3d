"""The inner product attack: direction and length at once."""

import torch

from leaktight.attacks import Direction, GradientNorm, InnerProduct
from leaktight.core.threat import Hints, Knows

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


def test_only_the_first_known_positive_is_used():
    assert InnerProduct().used_positions(Hints(torch.tensor([5, 8, 2]), torch.tensor([0, 1, 1]))).tolist() == [8]
    assert InnerProduct().needs == {Knows.HINTS}


def test_without_a_known_positive_there_is_no_score():
    assert InnerProduct().score(rows(), Hints(torch.tensor([1]), torch.tensor([0]))) is None
