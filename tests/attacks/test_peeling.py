"""Peeling takes example after example out of a gradient, and certifies none that is not there."""

import pytest
import torch

from leaktight.attacks.linear_layer import augment
from leaktight.attacks.peeling import Peeled, Spectrum, candidates, peel, slopes_of_pattern


def seen_by(layer, batch):
    return augment(layer.task.model.normalise(batch.inputs).flatten(1), torch.ones(len(batch)))


def matches(found, truth):
    """Return for each that was found which true example it is, -1 for none."""
    apart = torch.cdist(found, truth, p=torch.inf)
    return torch.where(apart.amin(1) < 0.01, apart.argmin(1), -1)


@pytest.mark.parametrize("public", [True, False], ids=["public loss", "any loss"])
@pytest.mark.parametrize("examples", [2, 5])
def test_all_examples_come_out_and_nothing_is_left(rectified, examples, public):
    for seed in range(4):
        layer, batch, gradient = rectified(examples, seed)
        peeled = peel(Peeled.nothing(gradient, examples), layer, public=public)
        found = matches(peeled.seen, seen_by(layer, batch))
        assert sorted(found.tolist()) == list(range(examples))
        assert peeled.left == 0
        assert peeled.rest.norm() < 1e-4 * gradient.norm()
        assert torch.equal(peeled.labels, batch.labels[found] if public else torch.full((examples,), -1))


def test_larger_batches_are_peeled_layer_by_layer(rectified):
    """Few rows have one example alone at first: the others come out only after these did."""
    at_once, in_turn = 0, 0
    for seed in range(6):
        layer, batch, gradient = rectified(8, seed, units=160)
        truth = seen_by(layer, batch)
        alone = candidates(Spectrum.of(gradient, 8), layer)[0]
        at_once += len(set(matches(alone, truth).tolist()) - {-1})
        found = matches(peel(Peeled.nothing(gradient, 8), layer, public=True).seen, truth).tolist()
        assert -1 not in found
        in_turn += len(set(found))
    assert at_once < 0.8 * in_turn
    assert in_turn > 0.95 * 6 * 8


@pytest.mark.parametrize("factor", [0.01, -3.0])
def test_a_factor_that_all_examples_have_in_common_is_measured(rectified, factor):
    layer, batch, gradient = rectified(5)
    peeled = peel(Peeled.nothing(factor * gradient, 5), layer, public=True)
    assert sorted(matches(peeled.seen, seen_by(layer, batch)).tolist()) == list(range(5))
    torch.testing.assert_close(peeled.slopes.T @ peeled.seen, factor * gradient, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("std", [1e-5, 1e-3, 0.1])
@pytest.mark.parametrize("public", [True, False], ids=["public loss", "any loss"])
def test_noise_leaves_no_false_certificate(rectified, std, public):
    for seed in range(4):
        layer, batch, gradient = rectified(5, seed)
        noise = torch.randn(gradient.shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
        peeled = peel(Peeled.nothing(gradient + std * noise, 5), layer, public=public)
        assert (matches(peeled.seen, seen_by(layer, batch)) >= 0).all() or not len(peeled.seen)


@pytest.mark.parametrize("public", [True, False], ids=["public loss", "any loss"])
def test_nothing_is_certified_in_noise_alone(rectified, public):
    layer, _, gradient = rectified(3)
    noise = torch.randn(gradient.shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    assert not len(peel(Peeled.nothing(noise, 3), layer, public=public).seen)


def test_an_examples_slopes_lower_the_rank_by_one(rectified):
    layer, batch, gradient = rectified(6)
    seen, spectrum = seen_by(layer, batch), Spectrum.of(gradient, 6)
    assert len(spectrum) == 6
    slopes = layer.slopes(seen)[torch.arange(6), batch.labels]
    torch.testing.assert_close(spectrum.weigh(slopes, seen), torch.full((6,), 1 / 6).double(), rtol=1e-3, atol=0)
    assert len(Spectrum.of(gradient - torch.outer(slopes[0], seen[0]) / 6, 6)) == 5


def test_slopes_follow_from_what_is_not_active(rectified):
    layer, batch, gradient = rectified(6)
    seen, spectrum = seen_by(layer, batch), Spectrum.of(gradient, 6)
    expected = layer.slopes(seen)[torch.arange(6), batch.labels]
    for y, truth in zip(seen, expected, strict=True):
        slopes, misfit = slopes_of_pattern(spectrum, layer.weight @ y)
        assert misfit < 1e-4
        assert torch.cosine_similarity(slopes, truth, dim=0).abs() > 0.9999
    _, misfit = slopes_of_pattern(spectrum, layer.weight @ seen[:2].mean(0))
    assert misfit > 0.01
