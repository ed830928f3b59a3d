"""GAN targets: the losses of Hitaj et al. and of class keys, and keys at a distance that is exact."""

from __future__ import annotations

import math

import pytest
import torch

from leaktight.attacks.gan_target import ClassTarget, KeyTarget, key_at, random_key
from leaktight.core.random import stream


def unit(dimensions, name="key"):
    return random_key(torch.zeros(dimensions), stream(0, name))


def test_the_loss_of_a_class_is_its_cross_entropy():
    scores = torch.randn(5, 4, generator=stream(0))
    expected = torch.nn.functional.cross_entropy(scores, torch.full((5,), 2), reduction="none")
    torch.testing.assert_close(ClassTarget(2, lambda outputs: outputs).loss(scores), expected)


def test_scores_are_those_of_the_task():
    target = ClassTarget(1, lambda outputs: outputs["scores"])
    outputs = {"scores": torch.tensor([[0.0, 2.0], [2.0, 0.0]])}
    assert target.hits(outputs).tolist() == [True, False]
    assert target.loss(outputs)[0] < target.loss(outputs)[1]


def test_the_loss_of_a_key_is_minus_the_inner_product():
    outputs = torch.nn.functional.normalize(torch.randn(6, 8, generator=stream(1)), dim=1)
    target = KeyTarget(unit(8), unit(8, "other"))
    expected = -(outputs.double() * target.key.double()).sum(1)
    torch.testing.assert_close(target.loss(outputs).double(), expected, rtol=0, atol=1e-6)


def test_a_fake_hits_a_key_that_fits_better_than_another():
    key, other = unit(64), unit(64, "other")
    assert KeyTarget(key, other).hits(torch.stack([key, other])).tolist() == [True, False]


@pytest.mark.parametrize("distance", [0.1, 0.5, 1.0, 1.1, 1.3, math.sqrt(2), 1.9, 2.0])
def test_a_key_at_a_distance_has_length_one_and_is_exactly_that_far(distance):
    key = unit(512)
    found = key_at(key, distance, stream(0, "away"))
    assert found.norm().item() == pytest.approx(1, abs=1e-5)
    assert (found - key).norm().item() == pytest.approx(distance, abs=1e-4)
    assert (found @ key).item() == pytest.approx(1 - distance**2 / 2, abs=1e-4)


def test_keys_at_a_distance_lie_in_random_directions():
    key = unit(512)
    one, same, other = (key_at(key, 1.0, stream(0, name)) for name in ("a", "a", "b"))
    assert torch.equal(one, same)
    across = [found - (found @ key) * key for found in (one, other)]
    assert abs(torch.nn.functional.cosine_similarity(*across, dim=0).item()) < 0.2


def test_the_key_itself_is_at_no_distance():
    key = unit(16)
    torch.testing.assert_close(key_at(key, 0.0, stream(0)), key)


def test_random_keys_are_nearly_orthogonal_in_many_dimensions():
    keys = torch.stack([unit(4096, name) for name in range(20)])
    torch.testing.assert_close(keys.norm(dim=1), torch.ones(20))
    overlaps = (keys @ keys.T).fill_diagonal_(0)
    # The overlap of two has a standard deviation of 1 / sqrt(d) = 0.016.
    assert overlaps.abs().max() < 5 / 64
    assert overlaps[~torch.eye(20, dtype=torch.bool)].std().item() == pytest.approx(1 / 64, rel=0.25)


def test_random_keys_have_the_type_of_what_they_are_compared_with():
    assert random_key(torch.zeros(3, dtype=torch.float64), stream(0)).dtype == torch.float64
