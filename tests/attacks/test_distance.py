"""Distances and starting points, against their definitions."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from leaktight.attacks import GradientMatching
from leaktight.attacks.distance import DISTANCES, cosine, l1, l2, layer_cosine
from leaktight.attacks.starting_point import initial_points
from leaktight.core.random import stream
from leaktight.core.threat import ThreatModel


def tensors(seed: int) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return {
        "a": torch.randn(3, 4, generator=generator),
        "b": torch.randn((), generator=generator),
        "c": torch.randn(5, generator=generator),
    }


def flat(named: dict[str, torch.Tensor]) -> torch.Tensor:
    return torch.cat([tensor.flatten() for tensor in named.values()])


def test_distances_are_what_their_names_say():
    one, other = tensors(0), tensors(1)
    assert torch.allclose(l2(one, other), (flat(one) - flat(other)).square().sum())
    assert torch.allclose(l1(one, other), (flat(one) - flat(other)).abs().sum())
    assert torch.allclose(cosine(one, other), 1 - F.cosine_similarity(flat(one), flat(other), dim=0))
    each = [1 - F.cosine_similarity(one[name].flatten(), other[name].flatten(), dim=0) for name in one]
    assert torch.allclose(layer_cosine(one, other), torch.stack(each).mean())


@pytest.mark.parametrize("name", DISTANCES)
def test_a_match_is_zero_and_what_was_not_sent_does_not_count(name):
    one = tensors(0)
    part = {"a": one["a"]}
    assert DISTANCES[name](one, one).abs() < 1e-6
    assert DISTANCES[name](one, part).abs() < 1e-6


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(["cosine", "layer_cosine"]), st.sampled_from([0.0, 1e-30, 1e-12, 1.0, 1e12]))
def test_a_cosine_stays_finite_with_its_slope(name, size):
    found = {key: (tensor * size).requires_grad_(True) for key, tensor in tensors(0).items()}
    value = DISTANCES[name](found, tensors(1))
    slopes = torch.autograd.grad(value, list(found.values()))
    assert value.isfinite()
    assert all(slope.isfinite().all() for slope in slopes)


@pytest.mark.parametrize("name", ["randn", "uniform", "zeros", "pattern"])
@pytest.mark.parametrize("shape", [(3, 7, 9), (12,)])
def test_starting_points_have_their_form_and_follow_the_stream(name, shape):
    one, same = (initial_points(name, 5, shape, torch.Generator().manual_seed(1)) for _ in range(2))
    assert one.shape == (5, *shape)
    assert torch.equal(one, same)
    if name == "uniform":
        assert one.min() >= -1
        assert one.max() < 1
    if name == "zeros":
        assert not one.any()


@pytest.mark.parametrize("shape", [(1, 6, 6), (3, 5, 9), (7,)])
def test_a_search_can_start_at_patterns_of_any_size(observe, shape):
    run = observe(victims=2, batch=3, shape=(*(1,) * (3 - len(shape)), *shape))
    guess = GradientMatching(initial="pattern", iterations=1)(ThreatModel().view(run), stream(0))
    assert guess.objective.isfinite().all()
