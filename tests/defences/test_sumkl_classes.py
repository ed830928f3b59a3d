"""What a label party takes its classes for: a textbook's estimate, and caution where only one of them is there."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from leaktight.core.random import stream
from leaktight.defences.cut_gradient import Rows
from leaktight.defences.divergence import Classes, Protection, allowed_sumkl, sumkl
from leaktight.defences.sumkl_classes import Estimate, estimate
from leaktight.defences.sumkl_solver import least


def of(matrix: torch.Tensor, labels: list[int], memory: dict | None = None) -> Estimate:
    memory = {} if memory is None else memory
    return estimate(Rows(matrix, matrix.norm(dim=1)), torch.tensor(labels) == 1, memory)


def drawn(n: int, d: int = 5, seed: int = 0) -> torch.Tensor:
    return torch.randn(n, d, generator=stream(seed, "classes"), dtype=torch.float64)


def test_both_classes_are_estimated_and_remembered() -> None:
    rows, labels, memory = drawn(10), [0, 1] * 5, {}
    found = of(rows, labels, memory)
    low, high = rows[::2], rows[1::2]
    assert found.seen
    assert torch.allclose(found.difference, high.mean(0) - low.mean(0))
    assert found.classes.negatives == pytest.approx(low.var(0, correction=0).mean().item())
    assert found.classes.positives == pytest.approx(high.var(0, correction=0).mean().item())
    assert (found.classes.share, memory["last"]["examples"]) == (0.5, 10)


@pytest.mark.parametrize("label", [0, 1])
def test_a_class_alone_is_apart_from_its_mirror_image_by_twice_its_length(label: int) -> None:
    rows = drawn(7)
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
    before = of(drawn(10) + 9 * torch.tensor([[0.0], [1.0]]).repeat(5, 1), [0, 1] * 5, memory)
    found = of(drawn(2) * 1e-3, [label] * 2, memory)
    assert torch.allclose(found.difference, before.difference * 5)
    other = before.classes.negatives if label else before.classes.positives
    spread = found.classes.negatives if label else found.classes.positives
    assert spread == pytest.approx(25 * other, rel=1e-4)
    assert found.classes.share == 0.5


def test_the_larger_gap_counts() -> None:
    memory: dict = {}
    near = of(drawn(10) * 1e-3, [0, 1] * 5, memory)
    far = of(torch.ones(10, 5), [1] * 10, memory)
    assert far.classes.gap == pytest.approx(20)
    assert near.classes.gap < 1
    assert of(drawn(10) * 1e-9, [1] * 10, memory).classes.gap == pytest.approx(near.classes.gap)


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
        of(drawn(6, d, seed), [0, 1] * 3, memory)
    found = of(drawn(n, d, seed + 1) * size, [label] * n, memory).classes
    assert min(found.negatives, found.positives) == 0
    assert sumkl(found, Protection()) == float("inf")
    noise = least(found, allowed_sumkl(bound))
    for shared in (1e-3, 1.0, 1e3):
        wider = Classes(found.negatives + shared, found.positives + shared, found.gap, d, found.share)
        assert sumkl(wider, noise) <= allowed_sumkl(bound) * (1 + 1e-9)
