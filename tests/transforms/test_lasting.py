"""Lasting draws: the same for an image in every round and every place, others for other images and other owners."""

from __future__ import annotations

from typing import Any

import torch

from leaktight.core.draws import public_draws
from leaktight.core.random import stream
from leaktight.transforms import Policy, crop_flip
from leaktight.transforms.lasting import lasting_draws

IMAGES = torch.rand(64, 1, 8, 8, generator=stream(0, "images"))


def test_numbers_belong_to_an_image_and_not_to_its_place_or_round() -> None:
    memory: dict[str, Any] = {}
    first = lasting_draws(IMAGES, memory, public_draws(0)).uniforms((64,))
    turned = lasting_draws(IMAGES.flip(0)[:9], memory, public_draws(1)).uniforms((9,))
    assert torch.equal(turned, first.flip(0)[:9])
    assert len(first.unique()) == 64
    other = lasting_draws(IMAGES, {}, public_draws(1)).uniforms((64,))
    assert not bool((first == other).any())


def test_numbers_are_those_of_one_stream_for_each_image() -> None:
    memory: dict[str, Any] = {}
    signs, places = (lasting_draws(IMAGES, memory, public_draws(0)).integers(2, shape) for shape in ((64,), (2, 64)))
    assert torch.equal(places[0], signs)
    assert 16 < int(signs.sum()) < 48


def test_policies_and_crops_take_them() -> None:
    memory: dict[str, Any] = {}
    policy = Policy.of("3-1-7+15")

    def change(images: torch.Tensor) -> torch.Tensor:
        draws = lasting_draws(images, memory, public_draws(0))
        return policy.apply(crop_flip(images, draws), draws)

    changed = change(IMAGES)
    assert torch.equal(change(IMAGES.flip(0)), changed.flip(0))
    assert not torch.equal(changed, IMAGES)
    assert change(IMAGES[:0]).shape == (0, 1, 8, 8)
