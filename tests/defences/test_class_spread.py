"""Two classes of rows: means and variances exact against numpy, and what a label party assumes of a class that is absent."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from leaktight.core.random import stream
from leaktight.defences.class_spread import ClassSpread, estimate, spreads
from leaktight.defences.cut_gradient import Rows
from leaktight.defences.divergence import Classes, NoisePair, allowed_sumkl, sumkl
from leaktight.defences.sumkl_solver import least


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


def of(matrix: torch.Tensor, labels: list[int], memory: dict | None = None) -> ClassSpread:
    memory = {} if memory is None else memory
    return estimate(Rows(matrix, matrix.norm(dim=1)), torch.tensor(labels) == 1, memory)


def draw_rows(n: int, d: int = 5, seed: int = 0) -> torch.Tensor:
    return torch.randn(n, d, generator=stream(seed, "classes"), dtype=torch.float64)


def test_both_classes_are_estimated_and_remembered() -> None:
    rows, labels, memory = draw_rows(10), [0, 1] * 5, {}
    found = of(rows, labels, memory)
    low, high = rows[::2], rows[1::2]
    assert found.seen
    assert torch.allclose(found.difference, high.mean(0) - low.mean(0))
    assert found.classes.negatives == pytest.approx(low.var(0, correction=0).mean().item())
    assert found.classes.positives == pytest.approx(high.var(0, correction=0).mean().item())
    assert (found.classes.share, memory["last"]["examples"]) == (0.5, 10)


@pytest.mark.parametrize("label", [0, 1])
def test_a_class_alone_is_apart_from_its_mirror_image_by_twice_its_length(label: int) -> None:
    rows = draw_rows(7)
    found = of(rows, [label] * 7)
    assert not found.seen
    assert (found.classes.negatives, found.classes.positives, found.classes.share) == (0, 0, 0.5)
    assert found.classes.gap == pytest.approx(4 * rows.square().sum(1).mean().item())
    assert torch.cosine_similarity(found.difference, rows.mean(0), dim=0) == pytest.approx(1)


def test_rows_that_cancel_are_as_far_from_their_mirror_image_as_others() -> None:
    row = torch.tensor([[3.0, 4.0]])
    assert of(torch.cat([row, -row]), [0, 0]).classes.gap == pytest.approx(100)
    assert of(torch.cat([row, -row * (1 + 1e-6)]), [0, 0]).classes.gap == pytest.approx(100, rel=1e-4)


@pytest.mark.parametrize("label", [0, 1])
def test_what_is_remembered_is_in_units_of_the_batch(label: int) -> None:
    """A batch of two rows out of one of ten: each row carries 1 / 2 in place of 1 / 10."""
    memory: dict = {}
    before = of(draw_rows(10) + 9 * torch.tensor([[0.0], [1.0]]).repeat(5, 1), [0, 1] * 5, memory)
    found = of(draw_rows(2) * 1e-3, [label] * 2, memory)
    assert torch.allclose(found.difference, before.difference * 5)
    other = before.classes.negatives if label else before.classes.positives
    spread = found.classes.negatives if label else found.classes.positives
    assert spread == pytest.approx(25 * other, rel=1e-4)
    assert found.classes.share == 0.5


def test_the_larger_gap_counts() -> None:
    memory: dict = {}
    near = of(draw_rows(10) * 1e-3, [0, 1] * 5, memory)
    far = of(torch.ones(10, 5), [1] * 10, memory)
    assert far.classes.gap == pytest.approx(20)
    assert near.classes.gap < 1
    assert of(draw_rows(10) * 1e-9, [1] * 10, memory).classes.gap == pytest.approx(near.classes.gap)


def test_zeros_have_nothing_to_hide() -> None:
    assert of(torch.zeros(3, 2), [1, 1, 1]).classes == Classes(0.0, 0.0, 0.0, 2, 0.5)


@settings(max_examples=60, deadline=None)
@given(
    size=st.sampled_from([1e-12, 1.0, 1e12]),
    n=st.integers(1, 30),
    d=st.integers(1, 8),
    label=st.integers(0, 1),
    remembers=st.booleans(),
    bound=st.floats(0.02, 0.48),
    seed=st.integers(0, 1000),
)
def test_a_class_alone_never_meets_a_bound_without_noise(size, n, d, label, remembers, bound, seed) -> None:
    memory: dict = {}
    if remembers:
        of(draw_rows(6, d, seed), [0, 1] * 3, memory)
    found = of(draw_rows(n, d, seed + 1) * size, [label] * n, memory).classes
    assert min(found.negatives, found.positives) == 0
    assert sumkl(found, NoisePair()) == float("inf")
    noise = least(found, allowed_sumkl(bound))
    for shared in (1e-3, 1.0, 1e3):
        wider = Classes(found.negatives + shared, found.positives + shared, found.gap, d, found.share)
        assert sumkl(wider, noise) <= allowed_sumkl(bound) * (1 + 1e-9)
