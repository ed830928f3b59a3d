"""Laplace noise: exact by the inverse distribution function, and never infinite."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from leaktight.core.draws import SeededDraws, laplace_from_uniform
from leaktight.core.errors import InvalidValue
from leaktight.core.local import Local, Now
from leaktight.core.message import Kind, Message
from leaktight.core.random import stream
from leaktight.defences import LaplaceNoise


@pytest.mark.parametrize("scale", [0.001, 0.5, 4.0])
def test_the_noise_follows_the_laplace_distribution(scale: float) -> None:
    message = Message(Kind.GRADIENT, "client-0", "server", 0, {"a": torch.zeros(20_000)})
    noise = LaplaceNoise(scale=scale).on_message(message, Local("client-0", seed=3)).tensors["a"]
    assert stats.kstest(noise.numpy(), "laplace", args=(0, scale)).pvalue > 0.01
    assert noise.var().item() == pytest.approx(2 * scale**2, rel=0.05)
    assert noise.abs().mean().item() == pytest.approx(scale, rel=0.03)


def test_it_is_added_to_the_message() -> None:
    message = Message(Kind.GRADIENT, "client-0", "server", 2, {"a": torch.full((4, 5), 7.0)})
    sent = LaplaceNoise(scale=0.5).on_message(message, Local("client-0", seed=3, now=Now(round=2))).tensors["a"]
    assert torch.equal(sent, 7.0 + 0.5 * SeededDraws(stream(3, "client-0", 2)).laplace_like(torch.empty(4, 5)))


@settings(max_examples=100, deadline=None)
@given(uniform=st.floats(0, 1, exclude_max=True))
def test_the_map_is_finite_and_inverts_the_distribution(uniform: float) -> None:
    value = laplace_from_uniform(torch.tensor(uniform, dtype=torch.float64)).item()
    assert math.isfinite(value)
    # The lower half runs from the middle outwards instead of inwards, which leaves the distribution as it is.
    mirrored = uniform if uniform >= 0.5 else 0.5 - uniform
    assert stats.laplace.cdf(value) == pytest.approx(mirrored, abs=1e-12)


@pytest.mark.parametrize("uniform", [0.0, 0.5, math.nextafter(0.5, 0), math.nextafter(1.0, 0), 5e-324])
def test_the_edges_are_finite(uniform: float) -> None:
    value = laplace_from_uniform(torch.tensor([uniform], dtype=torch.float64))
    assert torch.isfinite(value).all()
    assert value.abs().max() < 37


def test_the_tail_reaches_beyond_what_single_precision_draws_would_give() -> None:
    last = laplace_from_uniform(torch.tensor([1 - 2**-53], dtype=torch.float64)).item()
    assert last == pytest.approx(52 * math.log(2))
    assert last > -math.log(2**-24)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16])
def test_types_and_shapes_are_kept(dtype: torch.dtype) -> None:
    noise = SeededDraws(stream(0)).laplace_like(torch.zeros((), dtype=dtype))
    assert (noise.dtype, noise.shape) == (dtype, ())


def test_wrong_scale() -> None:
    with pytest.raises(InvalidValue, match=r"The `scale` of laplace_noise must be at least 0.* Got -0\.5 instead\."):
        LaplaceNoise(scale=-0.5)


def test_with_a_clip_the_scale_is_in_units_of_it() -> None:
    message = Message(Kind.UPDATE, "client-0", "server", 0, {"a": torch.full((20_000,), 5.0)})
    noise = LaplaceNoise(scale=0.1, clip=2.0)
    sent = noise.on_message(message, Local("client-0", seed=3)).tensors["a"]
    assert stats.kstest(sent.numpy(), "laplace", args=(2 / 20_000**0.5, 0.2)).pvalue > 0.01
    assert sent.norm().item() == pytest.approx(noise.noise_norm(20_000), rel=0.05)
