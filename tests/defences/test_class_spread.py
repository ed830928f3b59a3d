"""Means and variances of two classes: exact against numpy in double precision, also where single precision would lose them."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from leaktight.core.random import stream
from leaktight.defences.class_spread import spreads
from leaktight.defences.cut_gradient import Rows


def rows(matrix: torch.Tensor) -> Rows:
    return Rows(matrix, torch.linalg.vector_norm(matrix, dim=1))


def expected(matrix: torch.Tensor) -> tuple[torch.Tensor, float]:
    exact = matrix.double()
    return exact.mean(0), exact.var(0, correction=0).mean().item()


@settings(max_examples=60, deadline=None)
@given(
    negatives=st.integers(1, 40),
    positives=st.integers(1, 40),
    dimensions=st.integers(1, 30),
    offset=st.sampled_from([0.0, 1.0, 100.0, 1e4]),
    seed=st.integers(0, 1000),
)
def test_they_are_the_means_and_biased_variances(
    negatives: int, positives: int, dimensions: int, offset: float, seed: int
) -> None:
    rng = stream(seed, "spread")
    matrix = offset + torch.randn(negatives + positives, dimensions, generator=rng)
    which = torch.zeros(len(matrix), dtype=torch.bool)
    which[torch.randperm(len(matrix), generator=rng)[:positives]] = True
    for found, part in zip(spreads(rows(matrix), which), (matrix[~which], matrix[which]), strict=True):
        mean, variance = expected(part)
        assert found.count == len(part)
        assert torch.allclose(found.mean, mean, rtol=1e-5, atol=1e-6)
        assert found.variance == pytest.approx(variance, rel=1e-3, abs=1e-9)


def test_a_large_batch_loses_no_digits_that_matter() -> None:
    rng = stream(0, "large")
    which = torch.rand(60_000, generator=rng) < 0.2
    matrix = 3.0 + 0.01 * torch.randn(60_000, 16, generator=rng)
    for found, part in zip(spreads(rows(matrix), which), (matrix[~which], matrix[which]), strict=True):
        mean, variance = expected(part)
        assert torch.allclose(found.mean, mean, rtol=1e-4)
        assert found.variance == pytest.approx(variance, rel=1e-3)


def test_equal_rows_have_no_variance() -> None:
    matrix = torch.full((50, 3), 0.1)
    for found in spreads(rows(matrix), torch.arange(50) < 7):
        assert 0 <= found.variance < 1e-12


@pytest.mark.parametrize("positive", [True, False])
def test_a_class_may_be_missing(positive: bool) -> None:
    matrix = torch.tensor([[1.0, 2.0], [3.0, 2.0]])
    found = spreads(rows(matrix), torch.tensor([positive, positive]))
    missing, present = found if positive else found[::-1]
    assert (missing.count, missing.variance, missing.mean.tolist()) == (0, 0.0, [0.0, 0.0])
    assert (present.count, present.variance, present.mean.tolist()) == (2, pytest.approx(0.5), [2.0, 2.0])


def test_one_row_is_its_own_mean() -> None:
    matrix = torch.tensor([[0.1, 0.7, -3.0], [5.0, 5.0, 5.0], [6.0, 5.0, 5.0]])
    _, single = spreads(rows(matrix), torch.tensor([True, False, False]))
    assert (single.count, single.variance) == (1, 0.0)
    assert torch.equal(single.mean, matrix[0].double())
