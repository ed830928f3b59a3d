"""Clipping, of what is there: means, noise, and what a mask let out."""

from __future__ import annotations

import pytest
import torch

from leaktight.channels.clip import Clip
from leaktight.channels.largest import KeepLargest
from leaktight.channels.noise import AddNoise
from leaktight.core.channel import Belief, Noise, push_all
from leaktight.core.random import stream
from leaktight.defences.clipping import clip_each

TENSORS = {"weight": torch.tensor([[3.0, 0.0]]), "bias": torch.tensor([4.0])}


def test_all_tensors_are_scaled_together() -> None:
    belief = Clip(2.0).push(Belief(TENSORS))
    assert belief.means["weight"].tolist() == [[pytest.approx(1.2), 0.0]]
    assert belief.means["bias"].tolist() == [pytest.approx(1.6)]


@pytest.mark.parametrize("size", [0.0, 1e-12, 0.3, 1.0, 7.0, 1e12])
@pytest.mark.parametrize("bound", [1e-6, 1.0, 1e6])
def test_it_is_the_clip_of_the_defences(size: float, bound: float) -> None:
    each = {name: size * tensor[None] for name, tensor in TENSORS.items()}
    found = torch.func.vmap(lambda tensors: dict(Clip(bound).push(Belief(tensors)).means))(each)
    for name, tensor in clip_each(each, bound).items():
        assert torch.allclose(found[name], tensor, rtol=1e-5, atol=0)


@pytest.mark.parametrize("size", [0.0, 1e-3, 1e3])
def test_slopes_are_finite_also_at_zero(size: float) -> None:
    def length(mean: torch.Tensor) -> torch.Tensor:
        return Clip(1.0).push(Belief({"weight": mean})).means["weight"].sum()

    assert torch.func.grad(length)(size * torch.ones(3)).isfinite().all()


def test_noise_that_is_there_counts_and_is_scaled() -> None:
    noisy = AddNoise(std=3.0, laplace=2.0).push(Belief({"weight": torch.tensor([3.0, 4.0])}))
    factor = 1 / (25 + 2 * (9 + 2 * 4)) ** 0.5
    after = Clip(1.0).push(noisy)
    assert after.means["weight"].tolist() == pytest.approx([3 * factor, 4 * factor])
    assert float(after.noise_of("weight").variance) == pytest.approx(9 * factor**2)
    assert float(after.noise_of("weight").laplace) == pytest.approx(2 * factor)


def test_noise_that_is_not_there_stays_none() -> None:
    assert Clip(1.0).push(Belief(TENSORS, {"bias": Noise()})).noise_of("bias").is_none


def test_of_a_mask_only_what_went_out_counts() -> None:
    masked = KeepLargest(lambda entries: 2).push(Belief({"weight": torch.tensor([3.0, 4.0, 2.0, 1.0])}))
    after = Clip(1.0).push(masked)
    assert after.means["weight"].tolist() == pytest.approx([0.6, 0.8, 0.4, 0.2])
    assert float(after.masks["weight"].edge) == pytest.approx(0.6)


def test_noise_that_was_ranked_counts_where_it_went_out() -> None:
    """The factor is that of real draws, as far as a single one tells it."""
    rng = stream(0, "clip")
    mean = torch.randn(2000, generator=rng)
    stages = (AddNoise(std=0.7), KeepLargest(lambda entries: 400), Clip(1.0))
    after = push_all(stages, Belief({"weight": mean}))
    lengths = [torch.topk((mean + 0.7 * torch.randn(2000, generator=rng)).abs(), 400).values.norm() for _ in range(20)]
    stated = after.means["weight"][0] / mean[0]
    assert float(stated) == pytest.approx(1 / float(torch.stack(lengths).mean()), rel=0.02)
    assert float(after.masks["weight"].ranked.variance) == pytest.approx(0.49 * float(stated) ** 2, rel=1e-4)
