from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.fft
import scipy.stats
import torch
from torch import Tensor, nn

from leaktight.core.task import Normalise
from leaktight.data import Digits, Photos
from leaktight.priors import Generic
from leaktight.priors.generic import COLOUR, GREY, OPPONENTS, STRIDE, cosines
from leaktight.priors.prior import Coordinates

SHAPES = [(1, 8, 8), (3, 8, 8), (3, 32, 32), (1, 28, 28), (3, 20, 13), (1, 9, 30), (3, 64, 64), (4, 16, 16)]


def coordinates_of(shape: tuple[int, ...]) -> Coordinates:
    return Generic().coordinates(shape, nn.Identity(), None, 2)


def draw(shape: tuple[int, ...], count: int) -> Tensor:
    coordinates = coordinates_of(shape)
    z = torch.randn(count, coordinates.width, generator=torch.Generator().manual_seed(0))
    return coordinates.decode(z, torch.zeros(count, 2))


def covariance_of(coordinates: Coordinates) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and covariance of what is decoded from standard normal numbers."""
    zero, targets = torch.zeros(1, coordinates.width, dtype=torch.float64), torch.zeros(1, 2)
    mean = coordinates.decode(zero, targets).flatten()
    columns = coordinates.decode(
        torch.eye(coordinates.width, dtype=torch.float64), targets.expand(coordinates.width, 2)
    )
    map_ = columns.flatten(1) - mean
    return mean.numpy(), (map_.T @ map_).numpy()


@pytest.mark.parametrize("side", [1, 2, 7, 32])
def test_the_cosines_are_those_of_scipy(side: int) -> None:
    np.testing.assert_allclose(cosines(side).numpy(), scipy.fft.dct(np.eye(side), axis=0, norm="ortho"), atol=1e-12)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_draws_have_the_stated_mean_and_variance_at_any_size(shape: tuple[int, ...]) -> None:
    law = COLOUR if shape[0] == 3 else GREY
    variance = (sum(law.level) + sum(law.contrast)) / len(law.level)
    images = draw(shape, 3000)
    assert images.mean().item() == pytest.approx(law.mean, abs=0.02)
    assert (images - law.mean).square().mean().item() == pytest.approx(variance, rel=0.06)


@pytest.mark.parametrize("shape", [(3, 32, 32), (3, 20, 13), (1, 28, 28), (1, 9, 30)], ids=str)
def test_draws_have_the_stated_spectrum(shape: tuple[int, ...]) -> None:
    law, images = (COLOUR if shape[0] == 3 else GREY), draw(shape, 4000).double().numpy()
    directions = np.array(OPPONENTS) if shape[0] == 3 else np.eye(1)
    images = np.einsum("dc,nchw->ndhw", directions, images - law.mean)
    seen = np.square(scipy.fft.dctn(images, axes=(2, 3), norm="ortho")).mean(0)
    _, height, width = shape
    for direction in range(shape[0]):
        slope, knee = law.slope[direction], law.knee if law.per == "pixel" else law.knee / math.sqrt(height * width)
        frequency = np.arange(height)[:, None] / (2 * height) + np.arange(width) / (2 * width)
        ratio = seen[direction] * (frequency + knee) ** slope
        ratio = ratio.ravel()[1:] / np.median(ratio)
        # Mean squares of 4,000 normal numbers deviate by 2.2 %; six times that.
        np.testing.assert_allclose(ratio, 1, rtol=0.15)


@pytest.mark.parametrize("shape", [(3, 5, 7), (1, 8, 8)], ids=str)
def test_the_penalty_is_minus_the_gaussian_log_density(shape: tuple[int, ...]) -> None:
    coordinates = coordinates_of(shape)
    law = scipy.stats.multivariate_normal(*covariance_of(coordinates))
    inputs, targets = (
        torch.rand(4, *shape, dtype=torch.float64, generator=torch.Generator().manual_seed(0)),
        torch.zeros(4, 2),
    )
    z = coordinates.encode(inputs, targets)
    penalties = np.array(
        [coordinates.penalty(one[None], image[None]).item() for one, image in zip(z, inputs, strict=True)]
    )
    constant = penalties + law.logpdf(inputs.flatten(1).numpy())
    np.testing.assert_allclose(constant, constant[0], atol=1e-3)


def log_likelihood(images: Tensor) -> tuple[float, float]:
    """Return the mean log likelihood per number, and that of white noise of the same variance around the same mean."""
    shape = tuple(images.shape[1:])
    coordinates = coordinates_of(shape)
    law, size = (COLOUR if shape[0] == 3 else GREY), math.prod(shape)
    logarithms = sum(law.variances(direction, *shape[1:]).log().sum().item() for direction in range(len(law.level)))
    z = coordinates.encode(images, torch.zeros(len(images), 2))
    own = -0.5 * (z.square().sum(1).mean().item() + logarithms) / size - 0.5 * math.log(2 * math.pi)
    white = -0.5 * (math.log(2 * math.pi * (images - law.mean).square().mean().item()) + 1)
    return own, white


@pytest.mark.parametrize(("size", "nats"), [(8, 1.39), (32, 1.51), (64, 1.69)])
def test_photographs_are_far_likelier_than_noise_of_their_variance(size: int, nats: float) -> None:
    own, white = log_likelihood(Photos(size=size).load().train.inputs)
    assert own == pytest.approx(nats, abs=0.01)
    assert own > white + 1.4


def test_small_digits_are_no_less_likely_than_noise_of_their_variance() -> None:
    own, white = log_likelihood(Digits().load().train.inputs)
    assert own > white


def test_other_numbers_of_channels_are_independent_grey_pictures() -> None:
    z = torch.randn(2, 4, 36, generator=torch.Generator().manual_seed(0))
    together = coordinates_of((4, 6, 6)).decode(z.flatten(1), torch.zeros(2, 2))
    alone = coordinates_of((1, 6, 6)).decode(z.view(8, 36), torch.zeros(8, 2))
    torch.testing.assert_close(together, alone.view(2, 4, 6, 6))


@pytest.mark.parametrize("shape", [(7,), (3, 4)], ids=str)
def test_what_is_no_picture_is_standard_normal_to_the_network(shape: tuple[int, ...]) -> None:
    coordinates = Generic().coordinates(shape, Normalise([2.0], [3.0]), None, 2)
    inputs, targets = torch.rand(2, *shape, generator=torch.Generator().manual_seed(0)), torch.zeros(2, 2)
    z = coordinates.encode(inputs, targets)
    torch.testing.assert_close(z, ((inputs - 2) / 3).flatten(1))
    assert coordinates.whitened
    torch.testing.assert_close(coordinates.penalty(z, inputs), 0.5 * z.square().sum())


@pytest.mark.parametrize("shape", [(3, 32, 32), (1, 8, 8), (3, 64, 48), (2, 9, 9)], ids=str)
def test_a_unit_step_of_a_search_changes_pixels_by_no_more_than_the_stride(shape: tuple[int, ...]) -> None:
    coordinates = coordinates_of(shape)
    chosen = torch.arange(0, coordinates.width, 7)
    z = torch.zeros(len(chosen), coordinates.width)
    z[torch.arange(len(chosen)), chosen] = coordinates.steps()[chosen]
    targets = torch.zeros(len(chosen), 2)
    changes = coordinates.decode(z, targets) - coordinates.decode(torch.zeros_like(z), targets)
    sizes = changes.square().sum((1, 2, 3)).sqrt() / math.sqrt(shape[1] * shape[2])
    assert sizes[0].item() == pytest.approx(STRIDE, rel=1e-3)
    assert sizes.max().item() <= STRIDE * 1.001
