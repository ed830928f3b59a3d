"""sumKL of two Gaussian classes: against Monte Carlo, against the paper's objective, and at its edges."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import multivariate_normal, norm

from leaktight.core.errors import InvalidValue
from leaktight.defences.divergence import Classes, ClassNoise, NoisePair, allowed_sumkl, detection_error, power, sumkl

close = st.floats(-12, 4).map(lambda power: 10**power)
ordinary = st.builds(Classes, close, close, close, st.integers(1, 4096), st.floats(0.001, 0.999))


@pytest.mark.parametrize("dimensions", [1, 3])
def test_sumkl_is_the_sum_of_both_divergences(dimensions: int) -> None:
    """Against Monte Carlo of the two Gaussians with their noise."""
    classes, noise = Classes(0.5, 1.5, 2.0, dimensions, 0.3), NoisePair(ClassNoise(1.0, 0.25), ClassNoise(0.5, 0.1))
    axis = np.eye(dimensions)[0]
    spread = [
        (one.along - one.across) * np.outer(axis, axis) + (one.across + variance) * np.eye(dimensions)
        for one, variance in ((noise.negatives, 0.5), (noise.positives, 1.5))
    ]
    low, high = (
        multivariate_normal(middle * axis, cov, seed=0) for middle, cov in zip((0, math.sqrt(2)), spread, strict=True)
    )
    total = sum(
        np.mean(p.logpdf(x) - q.logpdf(x))
        for p, q in ((low, high), (high, low))
        for x in [p.rvs(400_000).reshape(-1, dimensions)]
    )
    assert sumkl(classes, noise) == pytest.approx(total, rel=0.02)


@settings(max_examples=100, deadline=None)
@given(classes=ordinary)
def test_sumkl_is_the_objective_halved_minus_the_dimensions(classes: Classes) -> None:
    u, v, g, d = classes.negatives, classes.positives, classes.gap, classes.dimensions
    objective = (d - 1) * (u / v + v / u) + (u + g) / v + (v + g) / u
    assert sumkl(classes, NoisePair()) == pytest.approx(objective / 2 - d, rel=1e-6, abs=1e-9 * d)


def test_points_apart_are_told_apart_without_fail() -> None:
    assert sumkl(Classes(0.0, 0.0, 1.0, 3, 0.5), NoisePair()) == math.inf
    assert sumkl(Classes(0.0, 1.0, 0.0, 1, 0.5), NoisePair()) == math.inf
    assert detection_error(math.inf) == 0


def test_the_power_is_the_mean_squared_length_of_the_noise() -> None:
    noise = NoisePair(ClassNoise(3.0, 0.5), ClassNoise(2.0, 0.0))
    assert power(Classes(1, 1, 1, 5, 0.25), noise) == pytest.approx(0.75 * (3 + 4 * 0.5) + 0.25 * 2)


@pytest.mark.parametrize("bound", [0.01, 0.1, 0.4, 0.49])
def test_allowed_sumkl_and_detection_error_are_inverse(bound: float) -> None:
    assert detection_error(allowed_sumkl(bound)) == pytest.approx(bound)


@settings(max_examples=100, deadline=None)
@given(gap=st.floats(0, 50))
def test_the_best_detector_of_two_equal_gaussians_obeys_the_bound(gap: float) -> None:
    """In one dimension with unit variance the least detection error is known: Phi(-sqrt(g) / 2)."""
    assert norm.cdf(-math.sqrt(gap) / 2) >= detection_error(sumkl(Classes(1.0, 1.0, gap, 1, 0.5), NoisePair())) - 1e-12


@pytest.mark.parametrize(
    ("made", "sentence"),
    [
        (
            lambda: Classes(-1.0, 1, 1, 1, 0.5),
            r"The `negatives` of two classes must be in \[0, inf\). Got -1.0 instead.",
        ),
        (
            lambda: Classes(1, math.nan, 1, 1, 0.5),
            r"The `positives` of two classes must be in \[0, inf\). Got nan instead.",
        ),
        (lambda: Classes(1, 1, math.inf, 1, 0.5), r"The `gap` of two classes must be in \[0, inf\). Got inf instead."),
        (lambda: Classes(1, 1, 1, 0, 0.5), "The `dimensions` of two classes must be at least 1. Got 0 instead."),
        (lambda: Classes(1, 1, 1, 1, 0.0), r"The `share` of positives must be in \(0, 1\). Got 0.0 instead."),
    ],
)
def test_wrong_numbers(made, sentence: str) -> None:
    with pytest.raises(InvalidValue, match=sentence):
        made()
