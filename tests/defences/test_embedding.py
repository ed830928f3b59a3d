"""Embedding: the fixed layer is a public function of its seed, costs nothing to train, and is what its factors multiply out to."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from leaktight.core.random import stream
from leaktight.defences.embedding import BIAS, EmbeddingHead, FixedLayer, LearnedLayer


def dense(layer: FixedLayer, features: int) -> Tensor:
    """Return the weight of a fixed layer as one matrix (dimensions, features), centring included, by what it makes of a basis."""
    basis = torch.eye(features)
    square = layer._square(basis)
    nothing = torch.zeros_like(layer.bias)
    mixed = (layer.right @ square.flatten(1)).view(-1, *square.shape[1:])
    return torch.baddbmm(nothing, layer.left, mixed).flatten(0, 1)[: layer.dimensions]


def images(examples: int, features: int) -> Tensor:
    return torch.randn(examples, features, generator=stream(0, "features"))


@pytest.mark.parametrize(("features", "dimensions"), [(4, 64), (5, 50), (16, 16), (84, 4096), (256, 16_384), (3, 2)])
def test_it_is_linear_then_layer_norm_then_relu_then_length_one(features: int, dimensions: int) -> None:
    layer, inputs = FixedLayer(features, dimensions, seed=1), images(6, features)
    bias = layer.bias.flatten()[:dimensions]
    made = inputs @ dense(layer, features).t() + bias
    # Layer norm's mean is already taken off, and its factor cancels.
    torch.testing.assert_close(made.mean(1), torch.zeros(6), atol=1e-4, rtol=0)
    normed = torch.nn.functional.layer_norm(made, (dimensions,), eps=0.0)
    expected = torch.nn.functional.normalize(normed.relu(), dim=1)
    torch.testing.assert_close(layer(inputs), expected, atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(layer(inputs).norm(dim=1), torch.ones(6))


def test_its_columns_are_nearly_orthonormal() -> None:
    weight = dense(FixedLayer(64, 4096, seed=0), 64)
    blocks = 4096 // 64
    gram = weight.t() @ weight / blocks
    torch.testing.assert_close(gram, torch.eye(64), atol=0.1, rtol=0)


def test_its_bias_is_small_beside_its_weight() -> None:
    layer = FixedLayer(64, 4096, seed=0)
    assert layer.bias.norm().item() == pytest.approx(BIAS * math.sqrt(64 * 64), rel=1e-4)


def test_it_follows_from_its_seed_alone() -> None:
    one, same, other = (FixedLayer(8, 128, seed)(images(3, 8)) for seed in (0, 0, 1))
    assert torch.equal(one, same)
    assert not torch.allclose(one, other)


def test_the_global_generator_is_left_alone() -> None:
    before = torch.random.get_rng_state()
    EmbeddingHead(8, 4, 64, fixed=True, seed=0)
    EmbeddingHead(8, None, 64, fixed=False, seed=0)
    assert torch.equal(before, torch.random.get_rng_state())


def test_nothing_of_it_is_trained_or_kept_in_a_state() -> None:
    layer = FixedLayer(256, 16_384, seed=0)
    assert list(layer.parameters()) == []
    assert layer.state_dict() == {}


def test_its_factors_are_far_fewer_than_the_entries_of_its_weight() -> None:
    layer = FixedLayer(256, 16_384, seed=0)
    assert sum(buffer.numel() for buffer in layer.buffers()) < 0.2 * 256 * 16_384


def test_it_passes_gradients_on() -> None:
    layer, inputs = FixedLayer(6, 40, seed=0).double(), images(2, 6).double().requires_grad_(True)
    assert torch.autograd.gradcheck(layer, (inputs,), eps=1e-6, atol=1e-4)


@pytest.mark.parametrize("fixed", [True, False])
def test_features_of_zero_embed_to_finite_numbers(fixed: bool) -> None:
    head = EmbeddingHead(4, None, 32, fixed=fixed, seed=0)
    inputs = torch.zeros(2, 4, requires_grad=True)
    found = head(inputs)
    found.sum().backward()
    assert torch.isfinite(found).all()
    assert inputs.grad is not None
    assert torch.isfinite(inputs.grad).all()


def test_a_learned_layer_is_trained_and_grows_with_the_dimensions() -> None:
    sizes = [sum(p.numel() for p in EmbeddingHead(8, None, d, fixed=False, seed=0).parameters()) for d in (64, 128)]
    assert sizes == [64 * 9, 128 * 9]
    fixed = [sum(p.numel() for p in EmbeddingHead(8, 4, d, fixed=True, seed=0).parameters()) for d in (64, 16_384)]
    assert fixed == [36, 36]


def test_a_learned_layer_has_layer_norm_without_parameters_and_length_one() -> None:
    layer = LearnedLayer(6, 30)
    inputs = images(4, 6)
    made = torch.nn.functional.linear(inputs, layer.weight, layer.bias)
    expected = torch.nn.functional.normalize(torch.nn.functional.layer_norm(made, (30,), eps=0.0).relu(), dim=1)
    torch.testing.assert_close(layer(inputs), expected, atol=1e-5, rtol=1e-4)


def test_heads_flatten_what_comes_in() -> None:
    head = EmbeddingHead(2 * 3 * 3, 5, 64, fixed=True, seed=0)
    assert head(torch.rand(4, 2, 3, 3, generator=stream(0))).shape == (4, 64)


def test_non_negative_embeddings_reach_about_seven_tenths_of_a_signed_key() -> None:
    # Half of a random key is negative: the best positive unit vector is its positive part, normalised.
    key = torch.nn.functional.normalize(torch.randn(4096, generator=stream(3)), dim=0)
    best = torch.nn.functional.normalize(key.relu(), dim=0)
    assert (best @ key).item() == pytest.approx(math.sqrt(0.5), abs=0.02)
