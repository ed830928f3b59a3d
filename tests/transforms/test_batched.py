"""Many images at once are, bit for bit, each image alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from leaktight.transforms import OPERATIONS
from leaktight.transforms.batched import apply_operation, as_image, as_pixels, source_pixels
from leaktight.transforms.shear import taps

SHAPES = [
    (3, 1, 32, 32),
    (3, 3, 32, 32),
    (2, 1, 28, 28),
    (2, 3, 7, 5),
    (2, 1, 2, 9),
    (2, 3, 1, 1),
    (2, 1, 1, 6),
    (1, 3, 40, 64),
]


def draw_images(shape: tuple[int, ...], kind: str = "noise", seed: int = 0) -> NDArray[Any]:
    rng = np.random.default_rng(seed)
    if kind == "flat":
        return np.full(shape, 77, dtype=np.uint8)
    if kind == "dull":
        return rng.integers(100, 140, shape).astype(np.uint8)
    return rng.integers(0, 256, shape).astype(np.uint8)


def one_by_one(name: str, pixels: NDArray[Any], value: float | None, sign: int) -> NDArray[Any]:
    return np.stack([as_pixels(OPERATIONS[name].apply(as_image(one), value, sign)) for one in pixels])


@pytest.mark.parametrize("kind", ["noise", "dull", "flat"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", OPERATIONS)
def test_every_operation_is_pillow_bit_for_bit(name: str, shape: tuple[int, ...], kind: str) -> None:
    pixels = draw_images(shape, kind)
    before = pixels.copy()
    for level in (0, 1, 4, 5, 9):
        for sign in (1, -1):
            value = OPERATIONS[name].value(level)
            assert np.array_equal(apply_operation(name, pixels, value, sign), one_by_one(name, pixels, value, sign))
    assert np.array_equal(pixels, before)


@settings(max_examples=40, deadline=None)
@given(
    name=st.sampled_from(list(OPERATIONS)),
    level=st.integers(0, 9),
    sign=st.sampled_from([1, -1]),
    shape=st.tuples(st.integers(1, 4), st.sampled_from([1, 3]), st.integers(1, 40), st.integers(1, 40)),
    seed=st.integers(0, 1000),
)
def test_any_shape_and_level(name: str, level: int, sign: int, shape: tuple[int, ...], seed: int) -> None:
    pixels, value = draw_images(shape, seed=seed), OPERATIONS[name].value(level)
    assert np.array_equal(apply_operation(name, pixels, value, sign), one_by_one(name, pixels, value, sign))


@pytest.mark.parametrize("name", OPERATIONS)
def test_no_images_are_no_images(name: str) -> None:
    assert apply_operation(name, draw_images((0, 3, 8, 8)), OPERATIONS[name].value(3), 1).shape == (0, 3, 8, 8)


def test_a_band_of_two_values_is_spread_by_equalize_and_stretched_by_autocontrast() -> None:
    pixels = np.where(np.arange(1024).reshape(1, 1, 32, 32) % 2 == 0, 100, 120).astype(np.uint8)
    assert np.unique(apply_operation("autocontrast", pixels, None, 1)).tolist() == [0, 255]
    # 512 of 1024 are below: a step of two per level, and what would go beyond white is cut.
    assert np.unique(apply_operation("equalize", pixels, None, 1)).tolist() == [0, 255]


def test_places_of_a_shift_and_taps_of_a_shear_by_hand() -> None:
    assert source_pixels("translateY", 4, 1, -0.25).tolist() == [0, -1, -2, -3]
    assert (source_pixels("rotate", 9, 9, 30.0) >= 0).sum() > 0
    found = taps("shearY", 3, 2, 1.0)
    assert found.offset.tolist() == [0.5] * 6
    assert found.places.tolist()[1] == [0, 3, 2, 5, 4, 5]
    # The centres of the second row's last pixel and of the third row lie at 3 or beyond, where the image ends.
    assert found.bare.tolist() == [False, False, False, True, True, True]
