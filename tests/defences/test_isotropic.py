"""Isotropic noise: as large as the longest row asks for, the same for every row."""

from __future__ import annotations

import math

import pytest
import torch
from scipy import stats

from leaktight.core.errors import InvalidValue
from leaktight.core.local import Local, Now
from leaktight.core.message import Kind, Message
from leaktight.core.random import stream
from leaktight.defences import IsotropicNoise


def message(rows: torch.Tensor) -> Message:
    return Message(Kind.CUT_GRADIENT, "label-party", "feature-party", 0, {"cut": rows})


def test_it_is_the_formula_with_the_party_s_own_stream() -> None:
    rows = torch.rand(5, 4, generator=stream(0))
    sent = (
        IsotropicNoise(ratio=2.0)
        .on_message(message(rows), Local("label-party", seed=7, now=Now(round=3)))
        .tensors["cut"]
    )
    std = 2.0 * rows.norm(dim=1).max().item() / 2
    assert torch.allclose(sent, rows + std * torch.randn(5, 4, generator=stream(7, "label-party", 3)))


@pytest.mark.parametrize("size", [1e-9, 1.0, 1e9])
@pytest.mark.parametrize("ratio", [0.25, 5.0, 25.0])
def test_the_noise_is_normal_and_as_long_as_asked(size: float, ratio: float) -> None:
    rows = torch.zeros(4000, 16)
    rows[17, 3] = -size
    sent = IsotropicNoise(ratio=ratio).on_message(message(rows), Local("label-party", seed=0)).tensors["cut"]
    noise = (sent.double() - rows.double()) / (ratio * size)
    # Paper, figure 2(c): variance 25 max ||g||^2 / d at ratio 5.
    assert noise.square().sum(1).mean().item() == pytest.approx(1.0, rel=0.02)
    assert noise.std().item() == pytest.approx(1 / math.sqrt(16), rel=0.02)
    assert stats.kstest(noise.flatten().numpy()[:20_000] * 4, "norm").pvalue > 0.01


def test_the_largest_row_of_all_tensors_counts() -> None:
    tensors = {"small": torch.zeros(2000, 3), "large": torch.zeros(2000, 1)}
    tensors["small"][0, 0], tensors["large"][0] = 3.0, 4.0
    clean = Message(Kind.CUT_GRADIENT, "label-party", "feature-party", 0, tensors)
    sent = IsotropicNoise(ratio=1.0).on_message(clean, Local("label-party", seed=0)).tensors
    assert torch.cat([sent["small"], sent["large"]], 1)[1:].std().item() == pytest.approx(2.5, rel=0.03)


def test_ratio_zero_and_nothing_to_send_are_left_alone() -> None:
    rows = torch.rand(3, 2)
    assert IsotropicNoise(ratio=0.0).on_message(message(rows), Local("label-party", seed=0)).tensors["cut"] is rows
    for empty in (torch.zeros(0, 4), torch.zeros(3, 0)):
        assert (
            IsotropicNoise().on_message(message(empty), Local("label-party", seed=0)).tensors["cut"].shape
            == empty.shape
        )
    zeros = torch.zeros(3, 2)
    assert torch.equal(IsotropicNoise().on_message(message(zeros), Local("label-party", seed=0)).tensors["cut"], zeros)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16])
def test_types_are_kept(dtype: torch.dtype) -> None:
    sent = IsotropicNoise().on_message(message(torch.rand(3, 2).to(dtype)), Local("label-party", seed=0))
    assert sent.tensors["cut"].dtype is dtype


def test_wrong_ratio() -> None:
    with pytest.raises(InvalidValue, match=r"The `ratio` of isotropic_noise must be at least 0\. Got -1.0 instead\."):
        IsotropicNoise(ratio=-1.0)
