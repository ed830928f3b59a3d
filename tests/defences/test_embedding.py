"""Embedding: the fixed layer is a public function of its seed, costs nothing to train, and is what its factors multiply out to."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from leaktight.core.errors import InvalidValue
from leaktight.core.random import stream
from leaktight.defences.embedding import BIAS, EmbeddingHead, FixedLayer


def dense(layer: FixedLayer, features: int) -> tuple[Tensor, Tensor]:
    """Return weight (dimensions, features) and bias of a fixed layer before layer norm, by multiplying out its factors."""
    weight = torch.kron(layer.left, layer.right)
    return weight[:, :features], layer.constant * weight[:, features]


def own_keys(examples: int, dimensions: int) -> tuple[Tensor, Tensor]:
    """Return keys of three classes, and whose each example has; the first has a part of all."""
    keys = torch.randn(3, dimensions, generator=stream(0, "keys"), dtype=torch.float64)
    weights = torch.eye(3, dtype=torch.float64)[torch.arange(examples) % 3]
    weights[0] = torch.tensor([0.2, 0.3, 0.5])
    return keys, weights


def images(examples: int, features: int) -> Tensor:
    return torch.randn(examples, features, generator=stream(0, "features"))


SIZES = [
    (4, 64),
    (5, 50),
    (16, 16),
    (84, 4096),
    (256, 16_384),
    (3, 2),
    (100, 1000),
    (84, 64),
    (8, 65_536),
    (100, 997),
    (300, 7),
]
"""Features and dimensions: fewer of one, fewer of the other, primes, and more than are made at a time."""


def literal(layer: FixedLayer, inputs: Tensor) -> Tensor:
    weight, bias = dense(layer, inputs.shape[1])
    normed = torch.nn.functional.layer_norm(inputs @ weight.t() + bias, (len(weight),), eps=0.0)
    return torch.nn.functional.normalize(normed.relu(), dim=1)


@pytest.mark.parametrize(("features", "dimensions"), SIZES)
def test_it_is_linear_then_layer_norm_then_relu_then_length_one(features: int, dimensions: int) -> None:
    layer, inputs = FixedLayer(features, dimensions, seed=1), images(6, features)
    torch.testing.assert_close(layer(inputs), literal(layer, inputs), atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(layer(inputs).norm(dim=1), torch.ones(6))


@pytest.mark.parametrize(("features", "dimensions"), SIZES)
def test_alignments_are_those_of_the_embeddings(features: int, dimensions: int) -> None:
    layer, inputs = FixedLayer(features, dimensions, seed=1).double(), images(6, features).double().requires_grad_(True)
    keys, weights = own_keys(6, dimensions)
    quick, plain = layer.alignments(inputs, keys, weights), (layer(inputs) * (weights @ keys)).sum(1)
    torch.testing.assert_close(quick, plain)
    [found], [expected] = (torch.autograd.grad(made.square().sum(), inputs) for made in (quick, plain))
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize(("features", "dimensions"), [(64, 4096), (256, 16_384), (8, 128), (84, 1024), (100, 997)])
def test_its_columns_are_orthonormal(features: int, dimensions: int) -> None:
    weight, _ = dense(FixedLayer(features, dimensions, seed=0), features)
    torch.testing.assert_close(weight.t() @ weight, torch.eye(features), atol=1e-5, rtol=0)


@pytest.mark.parametrize(("features", "dimensions"), [(128, 128), (84, 64), (300, 7), (100, 5000)])
def test_its_mean_over_dimensions_is_zero(features: int, dimensions: int) -> None:
    weight, bias = dense(FixedLayer(features, dimensions, seed=0), features)
    assert torch.cat([weight.mean(0), bias.mean()[None]]).abs().max() < 1e-6
    assert torch.linalg.matrix_rank(weight) >= min(features, dimensions) // 2


def test_a_feature_that_is_no_number_is_no_alignment() -> None:
    layer, inputs = FixedLayer(80, 40, seed=0), images(2, 80)
    inputs[0, 3] = torch.nan
    keys, weights = (tensor.float() for tensor in own_keys(2, 40))
    assert layer.alignments(inputs, keys, weights).isnan().tolist() == [True, False]


def test_its_dimensions_differ_and_take_all_features_in() -> None:
    for features, dimensions in SIZES[3:5]:
        weight, _ = dense(FixedLayer(features, dimensions, seed=0), features)
        unit = torch.nn.functional.normalize(weight[:2000], dim=1)
        assert (unit @ unit.t()).fill_diagonal_(0).abs().max() < 0.999
        assert torch.linalg.matrix_rank(weight) == features


def test_its_bias_is_small_beside_its_weight() -> None:
    weight, bias = dense(FixedLayer(64, 4096, seed=0), 64)
    assert (bias.norm() / weight.norm()).item() == pytest.approx(BIAS, rel=0.05)


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
    assert sum(buffer.numel() for buffer in layer.buffers()) < 0.01 * 256 * 16_384


def test_it_passes_gradients_on() -> None:
    layer, inputs = FixedLayer(80, 40, seed=0).double(), images(2, 80).double().requires_grad_(True)
    assert torch.autograd.gradcheck(layer, (inputs,), eps=1e-6, atol=1e-4)
    assert torch.autograd.gradgradcheck(layer, (inputs,), eps=1e-6, atol=1e-4)


def test_alignments_pass_on_every_derivative() -> None:
    layer, inputs = FixedLayer(80, 40, seed=0).double(), images(2, 80).double().requires_grad_(True)
    keys, weights = (tensor.requires_grad_(True) for tensor in own_keys(2, 40))
    assert torch.autograd.gradcheck(layer.alignments, (inputs, keys, weights), eps=1e-6, atol=1e-4)
    assert torch.autograd.gradgradcheck(layer.alignments, (inputs, keys, weights), eps=1e-6, atol=1e-4)


def test_alignments_can_be_differentiated_twice_for_many_keys_at_once() -> None:
    layer, inputs = FixedLayer(80, 40, seed=0).double(), images(2, 80).double()
    keys, weights = own_keys(2, 40)

    def slope(made: Callable[[Tensor], Tensor], features: Tensor) -> Tensor:
        return torch.func.grad(lambda at: made(at).sum())(features).square().sum()

    def quick(key: Tensor) -> Tensor:
        return torch.func.grad(lambda at: slope(lambda x: layer.alignments(x, key, weights), at))(inputs)

    def plain(key: Tensor) -> Tensor:
        return torch.func.grad(lambda at: slope(lambda x: (layer(x) * (weights @ key)).sum(1), at))(inputs)

    many = torch.stack([keys, -2 * keys])
    torch.testing.assert_close(torch.func.vmap(quick)(many), torch.func.vmap(plain)(many))


def test_alignments_can_be_differentiated_one_by_one() -> None:
    layer, inputs = FixedLayer(80, 40, seed=0).double(), images(4, 80).double()
    keys, weights = own_keys(4, 40)

    def one(features: Tensor, weight: Tensor) -> Tensor:
        return layer.alignments(features[None], keys, weight[None])[0]

    found = torch.func.vmap(torch.func.grad(one))(inputs, weights)
    asked = inputs.clone().requires_grad_(True)
    [expected] = torch.autograd.grad(layer.alignments(asked, keys, weights).sum(), asked)
    torch.testing.assert_close(found, expected)


def test_another_number_of_features_is_an_error() -> None:
    with pytest.raises(InvalidValue, match="The fixed layer takes 6 features"):
        FixedLayer(6, 40, seed=0)(images(2, 7))


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
    head, inputs = EmbeddingHead(6, None, 30, fixed=False, seed=0), images(4, 6)
    made = head.trained_part(inputs)
    expected = torch.nn.functional.normalize(torch.nn.functional.layer_norm(made, (30,), eps=0.0).relu(), dim=1)
    torch.testing.assert_close(head(inputs), expected, atol=1e-5, rtol=1e-4)


def test_heads_flatten_what_comes_in() -> None:
    head = EmbeddingHead(2 * 3 * 3, 5, 64, fixed=True, seed=0)
    assert head(torch.rand(4, 2, 3, 3, generator=stream(0))).shape == (4, 64)


def test_non_negative_embeddings_reach_about_seven_tenths_of_a_signed_key() -> None:
    # Half of a random key is negative: the best positive unit vector is its positive part, normalised.
    key = torch.nn.functional.normalize(torch.randn(4096, generator=stream(3)), dim=0)
    best = torch.nn.functional.normalize(key.relu(), dim=0)
    assert (best @ key).item() == pytest.approx(math.sqrt(0.5), abs=0.02)
