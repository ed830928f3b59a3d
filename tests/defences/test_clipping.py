"""Clipping: the formula, its extremes, and no norm above the bound in whatever precision."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from leaktight.core.message import Tensors
from leaktight.core.random import stream
from leaktight.defences.clipping import clip_each, example_norms, round_to

SHAPES = {"weight": (3, 4), "bias": (3,), "scale": ()}
HALF = st.sampled_from([torch.float16, torch.bfloat16])


def gradient(batch: int = 6, size: float = 1.0, seed: int = 0) -> dict[str, torch.Tensor]:
    rng = stream(seed, "toy")
    return {name: size * torch.randn((batch, *shape), generator=rng) for name, shape in SHAPES.items()}


def rows(tensors: Tensors) -> torch.Tensor:
    return torch.cat(
        [tensor.flatten(1) if tensor.dim() > 1 else tensor[:, None] for tensor in tensors.values()], 1
    ).double()


@settings(max_examples=40, deadline=None)
@given(
    clip=st.floats(1e-3, 1e3), size=st.sampled_from([0.0, 1e-30, 1e-3, 1.0, 1e6, 1e30, 1e37]), batch=st.integers(1, 5)
)
def test_clipping_agrees_with_the_formula_in_double_precision(clip: float, size: float, batch: int) -> None:
    found = gradient(batch, size)
    exact = rows(found)
    norms = exact.norm(dim=1)
    wanted = exact * (clip / norms.clamp_min(1e-300)).clamp_max(1)[:, None]
    assert torch.allclose(rows(clip_each(found, clip)), wanted, rtol=1e-5, atol=1e-6 * clip)
    assert torch.allclose(example_norms(found).double(), norms, rtol=1e-5, atol=0)


def test_gradients_within_the_norm_are_untouched() -> None:
    found = gradient(size=0.01)
    for name, tensor in clip_each(found, 1.0).items():
        assert torch.equal(tensor, found[name])


def test_nobody_s_gradients_stay_nobody_s() -> None:
    found = gradient(batch=0)
    assert {name: tensor.shape for name, tensor in clip_each(found, 1.0).items()} == {
        n: t.shape for n, t in found.items()
    }
    assert len(example_norms(found)) == 0


def test_a_half_precision_norm_does_not_overflow() -> None:
    tensors = {"weight": torch.ones(1, 100_000, dtype=torch.float16)}
    assert example_norms(tensors).item() == pytest.approx(math.sqrt(100_000), rel=1e-6)


@settings(max_examples=150, deadline=None)
@given(
    dtype=HALF,
    bound=st.floats(1e-3, 1e3),
    size=st.sampled_from([1e-4, 0.3, 1.0, 30.0, 1e3]),
    width=st.integers(1, 400),
    seed=st.integers(0, 10_000),
)
def test_half_precision_never_exceeds_the_bound(
    dtype: torch.dtype, bound: float, size: float, width: int, seed: int
) -> None:
    rng = stream(seed, "half")
    found = {
        "weight": (size * torch.randn(3, width, generator=rng)).to(dtype),
        "bias": (size * torch.randn(3, 2, generator=rng)),
    }
    clipped = clip_each(found, bound)
    assert (rows(clipped).norm(dim=1) <= bound).all()
    back = {name: round_to(tensor, found[name].dtype) for name, tensor in clipped.items()}
    assert (rows(back).norm(dim=1) <= bound).all()
    # And no more is taken off than that takes: what subnormal numbers cannot show apart.
    kept = torch.minimum(rows(found).norm(dim=1), torch.tensor(bound).double())
    assert (rows(back).norm(dim=1) >= 0.99 * kept - 1e-6 * math.sqrt(width)).all()


def test_millions_of_entries_are_not_longer_than_the_bound() -> None:
    wide = {"weight": torch.rand(1, 4_000_000, generator=stream(0, "wide"))}
    assert float(clip_each(wide, 1.0)["weight"].double().norm()) <= 1 + 2e-6


@settings(max_examples=100, deadline=None)
@given(dtype=HALF, numbers=st.lists(st.floats(-6e4, 6e4, width=32), min_size=1))
def test_rounding_is_towards_zero_and_to_a_neighbour(dtype: torch.dtype, numbers: list[float]) -> None:
    exact = torch.tensor(numbers)
    found = round_to(exact, dtype)
    assert found.dtype is dtype
    assert (found.float().abs() <= exact.abs()).all()
    nearest = exact.to(dtype).float()
    assert torch.allclose(found.float(), nearest, rtol=0.01, atol=1e-7)


def test_what_overflows_stays_infinite_and_what_fits_is_as_it_was() -> None:
    assert round_to(torch.tensor([1e9, -1e9]), torch.float16).tolist() == [math.inf, -math.inf]
    exact = torch.tensor([0.5, -2.0, 0.0])
    assert torch.equal(round_to(exact, torch.float16).float(), exact)
    assert round_to(exact, torch.float32) is exact
