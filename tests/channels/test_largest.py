"""Masks: which group, how many, by what edge, and what becomes of noise."""

from __future__ import annotations

import pytest
import torch

from leaktight.channels.largest import KeepLargest
from leaktight.channels.noise import AddNoise
from leaktight.core.channel import Belief, Mask, Noise, push_all
from leaktight.core.random import stream

TENSORS = {"weight": torch.tensor([[3.0, -1.0], [2.0, 0.5]]), "bias": torch.tensor([-4.0, 0.1])}


def half(entries: int) -> int:
    return entries // 2


def test_one_group_for_a_message() -> None:
    masks = KeepLargest(half).push(Belief(TENSORS)).masks
    assert {name: (mask.group, mask.count, float(mask.edge)) for name, mask in masks.items()} == dict.fromkeys(
        TENSORS, (("weight", "bias"), 3, 2.0)
    )


def test_one_group_for_each_tensor() -> None:
    masks = KeepLargest(half, "tensor").push(Belief(TENSORS)).masks
    assert {name: (mask.group, mask.count, float(mask.edge)) for name, mask in masks.items()} == {
        "weight": (("weight",), 2, 2.0),
        "bias": (("bias",), 1, 4.0),
    }


def test_earlier_noise_is_ranked_and_none_comes_after() -> None:
    belief = push_all((AddNoise(std=2.0), KeepLargest(half, sent_std=3.0)), Belief(TENSORS))
    assert belief.masks["bias"].ranked == Noise(4.0)
    assert belief.masks["bias"].sent == Noise(9.0)
    assert belief.noise_of("bias").is_none


def test_where_everything_goes_out_there_is_no_mask() -> None:
    belief = push_all((AddNoise(std=2.0), KeepLargest(lambda entries: entries, sent_std=3.0)), Belief(TENSORS))
    assert not belief.masks
    assert belief.noise_of("weight") == Noise(13.0)


def test_an_edge_follows_the_candidate() -> None:
    def edge(mean: torch.Tensor) -> torch.Tensor:
        found = KeepLargest(half).push(Belief({"weight": mean})).masks["weight"].edge
        assert isinstance(found, torch.Tensor)
        return found

    assert torch.func.grad(edge)(torch.tensor([3.0, -2.0, 1.0, 0.0])).tolist() == [0.0, -1.0, 0.0, 0.0]


def test_an_edge_under_noise_is_that_of_real_draws() -> None:
    rng = stream(0, "edge")
    mean = torch.randn(2000, generator=rng)
    for stage, draw in (
        (AddNoise(std=2.0), lambda: 2.0 * torch.randn(2000, generator=rng)),
        (
            AddNoise(laplace=2.0),
            lambda: 2.0 * torch.distributions.Laplace(0.0, 1.0).icdf(torch.rand(2000, generator=rng)),
        ),
    ):
        stated = push_all((stage, KeepLargest(lambda entries: 200)), Belief({"weight": mean})).masks["weight"].edge
        edges = [torch.topk((mean + draw()).abs(), 200).values.min() for _ in range(20)]
        assert float(stated) == pytest.approx(float(torch.stack(edges).mean()), rel=0.05)


def test_a_second_mask_knows_the_first() -> None:
    first, second = KeepLargest(half), KeepLargest(half, "tensor")
    masks = push_all((first, second), Belief(TENSORS)).masks
    assert masks["weight"].before is not None
    assert masks["weight"].before.group == ("weight", "bias")
    assert (masks["weight"].group, masks["weight"].count) == (("weight",), 0), (
        "nobody can say how many the first one left"
    )


def test_a_second_mask_after_noise_ranks_the_noise() -> None:
    masks = push_all((KeepLargest(half), AddNoise(std=1.0), KeepLargest(half)), Belief(TENSORS)).masks
    assert masks["weight"].ranked == Noise(1.0)
    assert masks["weight"].count == 3


def test_a_mask_scales_with_what_it_masks() -> None:
    mask = Mask(("weight",), 2, Noise(4.0), Noise(1.0), 3.0, before=Mask(("weight",), 3, edge=1.0)).scale(0.5)
    assert (mask.ranked, mask.sent, mask.edge) == (Noise(1.0), Noise(0.25), 1.5)
    assert mask.before is not None
    assert mask.before.edge == 0.5
