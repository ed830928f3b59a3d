"""Recognisers: they learn what is public, say that noise is nothing, and are made once."""

from __future__ import annotations

import pytest
import torch

from leaktight.core.random import stream
from leaktight.core.task import Batch
from leaktight.data import Digits
from leaktight.metrics import recogniser as module
from leaktight.metrics.recogniser import pictures_of_nothing, recogniser
from leaktight.models.generator import Generator
from leaktight.testing.conformance import own_randomness
from leaktight.testing.seats import squares


@pytest.fixture(scope="module")
def digits():
    return Digits().load()


@pytest.fixture(scope="module")
def known(digits):
    return recogniser(digits.test)


def test_it_recognises_digits_that_it_has_not_seen(digits, known):
    found = known.probabilities(digits.train.inputs)
    assert found.shape == (len(digits.train), 11)
    torch.testing.assert_close(found.sum(1), torch.ones(len(digits.train)))
    assert (found.argmax(1) == digits.train.labels).float().mean() > 0.9
    assert known.classes == 10


def test_it_says_that_noise_and_digits_in_pieces_are_nothing(digits, known):
    rng = stream(7)
    for pictures in (torch.rand(100, 1, 8, 8, generator=rng), pictures_of_nothing(digits.train.inputs[:200], rng)):
        assert (known.probabilities(pictures).argmax(1) == 10).float().mean() > 0.9


def test_it_says_that_textures_of_generators_are_nothing(known):
    """Also of those that were fitted to it for a few steps, with weights that it has not seen."""
    pictures = []
    for seed in range(8):
        generator = Generator(noise=16, width=6).build((1, 8, 8), seed=100 + seed)
        steps = torch.optim.Adam(generator.parameters(), lr=0.02)
        for _ in range(5):
            noise = 2 * torch.rand(16, 16, generator=stream(seed)) - 1
            scores = torch.stack([network(generator(noise)).log_softmax(1)[:, seed] for network in known.networks])
            steps.zero_grad()
            (-scores.mean()).backward()
            steps.step()
        pictures.append(generator(noise).detach())
    assert (known.probabilities(torch.cat(pictures)).argmax(1) == 10).float().mean() > 0.8


def test_what_a_screen_would_show_counts(digits, known):
    images = digits.train.inputs[:5]
    wild = images + 10 * (images == 1) - 10 * (images == 0)
    assert torch.equal(known.probabilities(wild), known.probabilities(images))


def test_it_follows_from_the_examples_and_the_seed_alone_and_is_made_once(monkeypatch):
    public = squares(30)
    monkeypatch.setattr(module, "STEPS", 20)
    monkeypatch.setattr(module, "_recognisers", {})
    with own_randomness("recogniser"):
        one = recogniser(public)
    assert recogniser(Batch(public.inputs.clone(), public.labels.clone())) is one
    monkeypatch.setattr(module, "_recognisers", {})
    again, other = recogniser(public), recogniser(public, seed=1)
    probabilities = [each.probabilities(public.inputs) for each in (one, again, other)]
    assert again is not one
    assert torch.equal(probabilities[0], probabilities[1])
    assert not torch.equal(probabilities[0], probabilities[2])


def test_other_labels_make_another_one_and_old_ones_are_forgotten(monkeypatch):
    made = []
    monkeypatch.setattr(module, "_recognisers", {})
    monkeypatch.setattr(module, "_train", lambda public, seed: made.append(public) or len(made))
    public = squares(6)
    assert recogniser(public) == recogniser(public) == 1
    assert recogniser(Batch(public.inputs, public.labels.flip(0))) == 2
    for seed in range(1, 5):
        recogniser(public, seed=seed)
    assert len(module._recognisers) == 4
    assert recogniser(public) == 7


def test_it_learns_although_the_caller_needs_no_gradients(monkeypatch):
    monkeypatch.setattr(module, "STEPS", 3)
    monkeypatch.setattr(module, "_recognisers", {})
    with torch.no_grad():
        found = recogniser(squares(9))
    assert len(found.networks) == 3
    assert not any(parameter.requires_grad for network in found.networks for parameter in network.parameters())


@pytest.mark.parametrize("shape", [(1, 28, 28), (3, 32, 32), (1, 8, 8), (1, 15, 30), (2, 64, 60), (1, 3, 3)])
def test_pictures_of_nothing_are_the_images_in_pieces_and_smooth_noise(shape):
    images = torch.rand(9, *shape, generator=stream(0))
    before = images.clone()
    found = pictures_of_nothing(images, stream(1))
    assert torch.equal(images, before)
    assert found.shape == images.shape
    for number in range(9):
        pieces = torch.equal(found[number].flatten(1).sort(1).values, images[number].flatten(1).sort(1).values)
        assert pieces is (number % 4 != 3)
        assert not torch.equal(found[number], images[number])
    smooth = found[3]
    assert smooth.min() >= 0
    assert smooth.max() <= 1


def test_pieces_are_squares_that_stay_whole():
    image = torch.arange(28.0 * 28).view(1, 1, 28, 28)
    found = pictures_of_nothing(image.repeat(3, 1, 1, 1), stream(0))[2, 0]
    tiles = {tuple(tile.flatten().tolist()) for tile in image[0, 0].unfold(0, 4, 4).unfold(1, 4, 4).flatten(0, 1)}
    assert {tuple(tile.flatten().tolist()) for tile in found.unfold(0, 4, 4).unfold(1, 4, 4).flatten(0, 1)} == tiles


def test_colours_of_a_pixel_stay_together():
    image = torch.stack([torch.arange(64.0), torch.arange(64.0) + 100]).view(1, 2, 8, 8)
    found = pictures_of_nothing(image, stream(0))[0].flatten(1)
    assert torch.equal(found[1] - found[0], torch.full((64,), 100.0))
