"""SPEAR splits a gradient by the zeros that a ReLU leaves, for any loss."""

import pytest
import torch

from leaktight.attacks.linear_layer import augment
from leaktight.attacks.peeling import Spectrum
from leaktight.attacks.spear import disentangle
from leaktight.core.random import stream


def private(layer, batch, seed):
    """Return the gradient of a loss that nobody knows: each example's slopes at the features are drawn by chance."""
    seen = augment(layer.task.model.normalise(batch.inputs).flatten(1), torch.ones(len(batch)))
    z = seen @ layer.weight.T
    drawn = torch.randn(z.shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return ((drawn * (z > 0)).T @ seen).float().double(), seen


@pytest.mark.parametrize("examples", [1, 2, 4, 7])
def test_all_examples_are_found_under_a_private_loss_and_that_is_known(rectified, examples):
    for seed in range(3):
        layer, batch, _ = rectified(examples, seed)
        gradient, seen = private(layer, batch, seed)
        found = disentangle(Spectrum.of(gradient, examples), layer, torch.zeros(0, 96), 2048, stream(0))
        assert found is not None
        assert torch.equal(found.agreement, torch.ones(examples).double())
        assert sorted(torch.cdist(found.seen, seen).argmin(1).tolist()) == list(range(examples))
        assert torch.cdist(found.seen, seen, p=torch.inf).amin(1).max() < 1e-3
        torch.testing.assert_close(found.slopes.T @ found.seen, gradient, rtol=1e-3, atol=1e-3)


def test_starts_near_the_examples_need_no_draws(rectified):
    layer, batch, _ = rectified(7)
    gradient, seen = private(layer, batch, 0)
    near = seen + 0.001 * torch.randn(seen.shape, generator=torch.Generator().manual_seed(1))
    assert disentangle(Spectrum.of(gradient, 7), layer, torch.zeros(0, 96), 0, stream(0)) is None
    found = disentangle(Spectrum.of(gradient, 7), layer, near @ layer.weight.T, 0, stream(0))
    assert found is not None
    assert torch.cdist(found.seen, seen, p=torch.inf).amin(1).max() < 1e-3


def test_noise_and_too_few_units_find_nothing(rectified):
    layer, batch, _ = rectified(4)
    gradient, _ = private(layer, batch, 0)
    noisy = gradient + 0.1 * torch.randn(gradient.shape, generator=torch.Generator().manual_seed(0))
    assert disentangle(Spectrum.of(noisy, 4), layer, torch.zeros(0, 96), 512, stream(0)) is None
    small, batch, gradient = rectified(10, units=12)
    assert disentangle(Spectrum.of(gradient, 10), small, torch.zeros(0, 12), 512, stream(0)) is None


def test_slopes_without_zeros_agree_with_no_example(rectified):
    """Behind another activation nothing is certified."""
    layer, batch, _ = rectified(3)
    seen = augment(layer.task.model.normalise(batch.inputs).flatten(1), torch.ones(3))
    drawn = torch.randn(3, 96, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    found = disentangle(Spectrum.of(drawn.T @ seen, 3), layer, torch.zeros(0, 96), 1024, stream(0))
    assert found is None or found.agreement.max() < 0.9
