"""Every example of a batch gets an answer; those that are certified come first and are right."""

import pytest
import torch

from leaktight.attacks.batch_reading import read_batch
from leaktight.attacks.linear_layer import augment
from leaktight.core.random import stream


def seen_by(layer, batch):
    return augment(layer.task.model.normalise(batch.inputs).flatten(1), torch.ones(len(batch)))


def errors(reading, truth):
    """Return how far each answer is from the nearest example."""
    return torch.cdist(reading.seen, truth, p=torch.inf).amin(1)


@pytest.mark.parametrize("public", [True, False], ids=["public loss", "any loss"])
def test_what_peeling_leaves_is_disentangled(rectified, public):
    """Of batches in which no row has one example alone."""
    for seed in (0, 1, 3):
        layer, batch, gradient = rectified(11, seed, units=200)
        reading = read_batch(gradient, layer, 11, 8192, stream(0), public=public)
        assert reading.certified.all()
        assert errors(reading, seen_by(layer, batch)).max() < 1e-3
        nearest = torch.cdist(reading.seen, seen_by(layer, batch)).argmin(1)
        assert sorted(nearest.tolist()) == list(range(11))
        assert torch.equal(reading.labels, batch.labels[nearest]) or not public


def test_a_loss_that_is_not_the_public_one_needs_not_be_known(rectified):
    layer, batch, _ = rectified(4)
    seen = seen_by(layer, batch)
    drawn = torch.randn(4, 96, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    gradient = (drawn * (seen @ layer.weight.T > 0)).T @ seen
    reading = read_batch(gradient, layer, 4, 2048, stream(0), public=True)
    assert reading.certified.all()
    assert errors(reading, seen).max() < 1e-3
    assert (reading.labels == -1).all()


@pytest.mark.parametrize("std", [1e-5, 1e-3, 1.0])
def test_there_is_an_answer_for_each_example_whatever_the_noise(rectified, std):
    for seed in range(3):
        layer, batch, gradient = rectified(6, seed)
        noise = torch.randn(gradient.shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
        reading = read_batch(gradient + std * noise, layer, 6, 512, stream(0))
        assert reading.seen.shape == (6, 37)
        assert reading.seen.isfinite().all()
        assert (errors(reading, seen_by(layer, batch))[reading.certified] < 0.01).all()
        assert torch.equal(reading.certified.sort(descending=True).values, reading.certified)


def test_more_examples_than_units_and_no_gradient_at_all_are_answered(rectified):
    layer, _, gradient = rectified(20, units=12)
    many, none = (read_batch(each, layer, 20, 512, stream(0)) for each in (gradient, torch.zeros_like(gradient)))
    for reading in (many, none):
        assert reading.seen.shape == (20, 37)
        assert reading.seen.isfinite().all()
    assert not none.certified.any()


def test_rows_that_mix_few_examples_are_nearer_than_those_with_the_largest_slopes(rectified):
    """Without any certificate, as under noise: the corners of what rows span."""
    ours, largest = [], []
    for seed in range(6):
        layer, batch, gradient = rectified(5, seed)
        noisy = gradient + 3e-4 * torch.randn(gradient.shape, generator=torch.Generator().manual_seed(seed))
        truth = seen_by(layer, batch)
        reading = read_batch(noisy, layer, 5, 0, stream(0))
        rows = noisy[noisy[:, -1].abs().argsort(descending=True)[:5]]
        ours.append(torch.cdist(reading.seen, truth).amin(0).mean())
        largest.append(torch.cdist(rows / rows[:, -1:], truth).amin(0).mean())
    assert sum(ours) < 0.8 * sum(largest)
