from __future__ import annotations

import itertools
import math

import pytest
import torch
from torch import Tensor

from leaktight.core.errors import InvalidValue
from leaktight.core.random import stream
from leaktight.metrics.kernel_information import information_bounds, squared_distances


def bounds(points: Tensor, noise: float) -> tuple[float, float]:
    return information_bounds(squared_distances(points, points), noise)


def normal(count: int, dimensions: int, seed: int = 0) -> Tensor:
    return torch.randn(count, dimensions, generator=stream(seed, "points"), dtype=torch.float64)


@pytest.mark.parametrize("dimensions", [1, 2])
@pytest.mark.parametrize("noise", [0.2, 1.0, 3.0])
def test_what_gaussian_points_tell_lies_between_the_bounds(dimensions: int, noise: float) -> None:
    """For Gaussian x of variance 1 under Gaussian noise the information is d/2 log2(1 + 1 / noise^2); 2000 points tell up to 11 bits."""
    truth = dimensions / 2 * math.log2(1 + 1 / noise**2)
    points = normal(2000, dimensions)
    lower, upper = bounds(points, noise)
    assert lower < truth < upper
    # Each is as Gaussian integrals say, with a point's kernel around itself beside those around all others.
    for found, alpha in ((lower, 4), (upper, 1)):
        wide = alpha * noise**2
        others = (wide / (wide + 1)) ** (dimensions / 2) * torch.exp(-points.square().sum(1) / (2 * (wide + 1)))
        expected = -(1 / 2000 + (1 - 1 / 2000) * others).log2().mean().item()
        assert found == pytest.approx(expected, abs=0.05 * dimensions)


def test_the_bounds_hold_for_a_mixture_that_is_integrated() -> None:
    """Two points under noise: I is one bit less what the noise hides, by numeric integration."""
    for gap in (0.3, 1.0, 2.0, 4.0):
        grid = torch.linspace(-12, 12 + gap, 200_001, dtype=torch.float64)
        one, other = (torch.exp(-((grid - centre) ** 2) / 2) / math.sqrt(2 * math.pi) for centre in (0.0, gap))
        mixture = (one + other) / 2
        entropy = -torch.trapezoid(torch.xlogy(mixture, mixture), grid).item() / math.log(2)
        truth = entropy - 0.5 * math.log2(2 * math.pi * math.e)
        lower, upper = bounds(torch.tensor([[0.0], [gap]]), 1.0)
        assert lower <= truth <= upper


def test_equal_points_tell_nothing() -> None:
    assert bounds(torch.full((50, 7), 123.456), 0.01) == pytest.approx((0, 0), abs=1e-9)


def test_points_far_apart_tell_which_one_it_is() -> None:
    points = torch.arange(64.0)[:, None] * 100
    assert bounds(points, 0.1) == pytest.approx((6, 6), abs=1e-12)


def test_groups_of_equal_points_tell_the_group() -> None:
    points = torch.arange(8.0).repeat(4)[:, None] * 1000
    assert bounds(points, 1.0) == pytest.approx((3, 3), abs=1e-12)


def test_the_plain_formula_agrees() -> None:
    points = normal(60, 5)
    for found, alpha in zip(bounds(points, 0.7), (4, 1), strict=True):
        kernel = torch.exp(-(torch.cdist(points, points) ** 2) / (2 * alpha * 0.7**2))
        assert found == pytest.approx(-kernel.mean(1).log2().mean().item(), rel=1e-9)


def test_more_noise_tells_less() -> None:
    points = normal(100, 3)
    found = [bounds(points, noise) for noise in (0.01, 0.1, 1.0, 10.0)]
    for sharper, duller in itertools.pairwise(found):
        assert sharper >= duller
    assert found[0][1] == pytest.approx(math.log2(100), abs=1e-6)


@pytest.mark.parametrize("noise", [1e-150, 1e150])
def test_extremes_stay_within_zero_and_all(noise: float) -> None:
    for end in bounds(normal(20, 3), noise):
        assert -1e-12 <= end <= math.log2(20) + 1e-12


@pytest.mark.parametrize("width", [1, 8192, 20_000])
def test_distances_are_exact_far_from_the_origin(width: int) -> None:
    rows = normal(6, width) * 1e-3 + 1e4
    others = normal(9, width, seed=1) * 1e-3 + 1e4
    expected = torch.cdist(rows, others, compute_mode="donot_use_mm_for_euclid_dist") ** 2
    assert torch.allclose(squared_distances(rows, others), expected, rtol=1e-6)


@pytest.mark.parametrize("noise", [0.0, -1.0, math.inf, math.nan])
def test_noise_must_be_a_positive_number(noise: float) -> None:
    with pytest.raises(InvalidValue, match=r"The `noise` of a bound on information must be a number in \(0, inf\)"):
        information_bounds(torch.zeros(2, 2), noise)
