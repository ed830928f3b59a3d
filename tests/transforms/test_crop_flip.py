"""Crop and flip: every image is one of the 162 that padding, cutting and mirroring can make of it, each equally likely."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from torch import Tensor

from leaktight.core.draws import SeededDraws
from leaktight.core.errors import InvalidValue, Refusal
from leaktight.core.random import stream
from leaktight.transforms import crop_flip


def possible(image: Tensor) -> dict[bytes, tuple[int, int, bool]]:
    """Return all that can become of an image, by slicing with numpy."""
    array = image.numpy()
    padded = np.pad(array, ((0, 0), (4, 4), (4, 4)))
    height, width = array.shape[1:]
    found = {}
    for top, left, mirrored in itertools.product(range(9), range(9), (False, True)):
        cut = padded[:, top : top + height, left : left + width]
        found[np.ascontiguousarray(cut[:, :, ::-1] if mirrored else cut).tobytes()] = (top, left, mirrored)
    return found


@pytest.mark.parametrize("shape", [(1, 6, 9), (3, 8, 8)], ids=str)
def test_every_image_is_one_of_the_possible_ones_and_all_come_up(shape: tuple[int, ...]) -> None:
    image = torch.rand(shape, generator=stream(0))
    known = possible(image)
    assert len(known) == 162
    found = crop_flip(image.expand(4000, *shape), SeededDraws(stream(1)))
    drawn = [known[one.numpy().tobytes()] for one in found]
    assert len(set(drawn)) == 162
    counts = np.array([drawn.count(each) for each in known.values()])
    expected = 4000 / 162
    # Chi-square with 161 degrees of freedom: mean 161, standard deviation 18; five of them.
    assert ((counts - expected) ** 2 / expected).sum() < 161 + 5 * 18


def test_images_draw_their_own_and_the_input_stays() -> None:
    images = torch.rand(20, 3, 8, 8, generator=stream(0))
    before = images.clone()
    found = crop_flip(images, SeededDraws(stream(3)))
    for one, image in zip(found, images, strict=True):
        assert one.numpy().tobytes() in possible(image)
    assert torch.equal(images, before)
    assert torch.equal(found, crop_flip(images, SeededDraws(stream(3))))
    assert not torch.equal(found, crop_flip(images, SeededDraws(stream(4))))
    assert (found.dtype, found.is_contiguous()) == (images.dtype, True)
    assert crop_flip(images[:0], SeededDraws(stream(0))).shape == (0, 3, 8, 8)


def test_what_is_no_image_is_refused() -> None:
    with pytest.raises(Refusal, match="A transformation needs images of shape"):
        crop_flip(torch.zeros(4, 5), SeededDraws(stream(0)))
    with pytest.raises(InvalidValue, match=r"must be in \[0, 1\]"):
        crop_flip(torch.full((1, 1, 4, 4), torch.nan), stream(0))
