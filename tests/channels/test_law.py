"""Laws against scipy's densities and probabilities, and far out in their tails."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.integrate
import scipy.stats
import torch
from torch import Tensor

from leaktight.channels.law import distribution, log_density, log_within
from leaktight.core.channel import Noise

RESIDUALS = torch.tensor([-3.0, -0.4, 0.0, 0.05, 1.0, 2.5], dtype=torch.float64)


def normal_laplace(residual: float, std: float, scale: float) -> float:
    """Return the density of a Gaussian and a Laplace number together, by quadrature."""
    edges = sorted({-20 * std, 0.0, residual, 20 * std})
    parts = [
        scipy.integrate.quad(
            lambda x: scipy.stats.norm.pdf(x, scale=std) * scipy.stats.laplace.pdf(residual - x, scale=scale), a, b
        )
        for a, b in itertools.pairwise(edges)
    ]
    return sum(part[0] for part in parts)


def test_the_gaussian_density() -> None:
    found = log_density(RESIDUALS, Noise(variance=0.49), floor=0.1)
    assert found.numpy() == pytest.approx(scipy.stats.norm.logpdf(RESIDUALS, scale=0.5**0.5))


def test_the_laplace_density() -> None:
    found = log_density(RESIDUALS[RESIDUALS != 0], Noise(laplace=0.3), floor=1e-7)
    assert found.numpy() == pytest.approx(scipy.stats.laplace.logpdf(RESIDUALS[RESIDUALS != 0], scale=0.3), abs=1e-9)


@pytest.mark.parametrize(("std", "scale"), [(0.2, 0.5), (0.5, 0.5), (2.0, 0.3)])
def test_the_density_of_the_sum(std: float, scale: float) -> None:
    found = log_density(RESIDUALS, Noise(variance=std**2, laplace=scale)).exp()
    assert found.numpy() == pytest.approx(np.array([normal_laplace(float(r), std, scale) for r in RESIDUALS]), rel=1e-6)


def test_a_gaussian_part_that_hides_the_laplace_part() -> None:
    below, above = (log_density(RESIDUALS, Noise(variance=ratio**2, laplace=1.0)) for ratio in (29.999, 30.001))
    assert torch.allclose(below, above, atol=1e-4)
    wide = log_density(RESIDUALS.float(), Noise(variance=1.0, laplace=1e-6))
    assert wide.numpy() == pytest.approx(scipy.stats.norm.logpdf(RESIDUALS), rel=1e-5)


@pytest.mark.parametrize("std", [0.01, 1.0, 50.0])
@pytest.mark.parametrize("bound", [1e-4, 0.099, 0.101, 1.0, 30.0])
def test_the_probability_of_a_bound_under_gaussian_noise(std: float, bound: float) -> None:
    means = torch.tensor([-3.0, 0.0, 0.3, 2.0, 8.0], dtype=torch.float64) * std
    law = scipy.stats.norm(loc=means, scale=std)
    # From the nearer tail: the other difference loses all digits.
    wanted = np.where(means > 0, law.cdf(bound) - law.cdf(-bound), law.sf(-bound) - law.sf(bound))
    found = log_within(means, torch.tensor(bound, dtype=torch.float64), Noise(variance=std**2)).exp()
    assert found.numpy() == pytest.approx(wanted, rel=2e-4)


@pytest.mark.parametrize("bound", [1e-3, 0.5, 4.0])
def test_the_probability_of_a_bound_under_laplace_noise(bound: float) -> None:
    means = torch.tensor([-3.0, 0.0, 0.3, 0.5, 2.0, 8.0], dtype=torch.float64)
    law = scipy.stats.laplace(loc=means, scale=0.7)
    wanted = np.where(means > 0, law.cdf(bound) - law.cdf(-bound), law.sf(-bound) - law.sf(bound))
    found = log_within(means, torch.tensor(bound, dtype=torch.float64), Noise(laplace=0.7)).exp()
    assert found.numpy() == pytest.approx(wanted, rel=1e-6)


def slopes(noise: Noise, bound: float) -> tuple[Tensor, Tensor]:
    means = torch.tensor([0.0, 1e-6, 0.5, 10.0, 1e3, -1e3, 1e5], requires_grad=True)
    values = log_within(means, torch.tensor(bound), noise, floor=1e-6)
    return values.detach(), torch.autograd.grad(values.sum(), means)[0]


@pytest.mark.parametrize("noise", [Noise(variance=1.0), Noise(laplace=1.0), Noise(variance=0.5, laplace=0.5)], ids=str)
@pytest.mark.parametrize("bound", [0.0, 1e-3, 0.2, 3.0, 1e30])
def test_bounds_are_finite_in_both_tails_with_a_slope_back(noise: Noise, bound: float) -> None:
    values, slope = slopes(noise, bound)
    assert values.isfinite().all()
    assert slope.isfinite().all()
    assert bound > 1e3 or (slope[4] < 0 < slope[5])


@pytest.mark.parametrize("noise", [Noise(variance=1.0), Noise(laplace=1.0), Noise(variance=1e-6, laplace=1.0)], ids=str)
def test_densities_are_finite_far_out_with_a_slope_back(noise: Noise) -> None:
    residual = torch.tensor([0.0, 1e3, -1e3, 1e6], requires_grad=True)
    values = log_density(residual, noise, floor=1e-4)
    slope = torch.autograd.grad(values.sum(), residual)[0]
    assert values.isfinite().all()
    assert slope.isfinite().all()
    assert slope[1] < 0 < slope[2]


def test_distributions_against_scipy() -> None:
    gaussian, laplace = distribution(RESIDUALS, Noise(variance=0.25)), distribution(RESIDUALS, Noise(laplace=0.4))
    assert gaussian.numpy() == pytest.approx(scipy.stats.norm.cdf(RESIDUALS, scale=0.5))
    assert laplace.numpy() == pytest.approx(scipy.stats.laplace.cdf(RESIDUALS, scale=0.4))


def test_the_distribution_of_the_sum_is_the_integral_of_its_density() -> None:
    noise = Noise(variance=0.25, laplace=0.4)
    places = torch.linspace(-12, 3, 30001, dtype=torch.float64)
    integral = scipy.integrate.cumulative_trapezoid(log_density(places, noise).exp(), places, initial=0)
    assert distribution(places, noise).numpy() == pytest.approx(integral, abs=1e-6)
