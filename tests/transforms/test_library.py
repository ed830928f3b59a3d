"""Each of the fifty functions against its definition, written down a second time: real numbers, loops and Keys' cubic."""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image
from scipy import ndimage

from leaktight.core.errors import InvalidValue
from leaktight.transforms import LIBRARY, OPERATIONS, Function, same_as
from leaktight.transforms.library import function_at

Array = NDArray[Any]
SIZE = (24, 32)
# Index, operation, listed probability, level and value, as published.
TABLE = """
0 invert .1 7 -; 1 contrast .2 6 .3333; 2 rotate .7 2 6.667; 3 translateX .3 9 .4532; 4 sharpness .8 1 .0556;
5 sharpness .9 3 .1667; 6 shearY .5 2 .0667; 7 translateY .7 2 .1007; 8 autocontrast .5 5 -; 9 equalize .9 2 -;
10 shearY .2 5 .1667; 11 posterize .3 5 6; 12 color .4 3 .1667; 13 brightness .6 5 .2778; 14 sharpness .3 9 .5;
15 brightness .7 9 .5; 16 equalize .6 5 -; 17 equalize .5 1 -; 18 contrast .6 7 .3889; 19 sharpness .6 5 .2778;
20 color .7 5 .2778; 21 translateX .5 5 .2518; 22 equalize .3 7 -; 23 autocontrast .4 8 -; 24 translateY .4 3 .1511;
25 sharpness .2 6 .3333; 26 brightness .9 6 .3333; 27 color .2 8 .4444; 28 solarize .5 0 256; 29 invert .0 0 -;
30 equalize .2 0 -; 31 autocontrast .6 0 -; 32 equalize .2 8 -; 33 equalize .6 4 -; 34 color .9 5 .2778;
35 equalize .6 5 -; 36 autocontrast .8 4 -; 37 solarize .2 4 142.22; 38 brightness .1 3 .1667; 39 color .7 0 0;
40 solarize .4 1 227.56; 41 autocontrast .9 0 -; 42 translateY .9 3 .1511; 43 translateY .7 3 .1511; 44 autocontrast .9 1 -;
45 solarize .8 1 227.56; 46 equalize .8 5 -; 47 invert .1 0 -; 48 translateY .7 3 .1511; 49 autocontrast .9 1 -
"""


def picture(channels: int) -> Array:
    """Return (height, width, channels) with smooth parts, noise and a dull range."""
    rng = np.random.default_rng(channels)
    slope = np.broadcast_to(np.linspace(20, 220, SIZE[1]), SIZE)
    noise = rng.integers(10, 240, (*SIZE, channels))
    return np.where(rng.random((*SIZE, 1)) < 0.5, slope[..., None], noise).astype(np.uint8)


def changed(function: Function, array: Array, sign: int) -> Array:
    grey = array.shape[2] == 1
    image = Image.fromarray(array[..., 0] if grey else array)
    found = np.asarray(OPERATIONS[function.operation].apply(image, function.value, sign))
    return (found[..., None] if grey else found).astype(float)


def luma(array: Array) -> Array:
    if array.shape[2] == 1:
        return array.astype(float)
    return np.floor(array.astype(float) @ np.array([0.299, 0.587, 0.114]) + 0.5)[..., None]


def blend(degenerate: Array, array: Array, factor: float) -> Array:
    return np.clip((1 - factor) * degenerate + factor * array.astype(float), 0, 255)


def smoothed(array: Array) -> Array:
    kernel = np.array([[1, 1, 1], [1, 5, 1], [1, 1, 1]]) / 13
    smooth = np.stack([ndimage.convolve(array[..., c].astype(float), kernel) for c in range(array.shape[2])], axis=2)
    border = np.ones(array.shape, dtype=bool)
    border[1:-1, 1:-1] = False
    return np.where(border, array, np.floor(smooth + 0.5))


def from_places(array: Array, place: Callable[[int, int], tuple[float, float]], fill: int) -> Array:
    """Return the pixel nearest to the place (row, column) of each output pixel."""
    found = np.full(array.shape, float(fill))
    for row, column in itertools.product(*map(range, SIZE)):
        source = tuple(math.floor(at + 0.5) for at in place(row, column))
        if 0 <= source[0] < SIZE[0] and 0 <= source[1] < SIZE[1]:
            found[row, column] = array[source]
    return found


def turn(row: int, column: int, degrees: float) -> tuple[float, float]:
    angle, up, right = math.radians(degrees), (SIZE[0] - 1) / 2 - row, column - (SIZE[1] - 1) / 2
    back = complex(right, up) * complex(math.cos(angle), -math.sin(angle))
    return (SIZE[0] - 1) / 2 - back.imag, (SIZE[1] - 1) / 2 + back.real


def keys(distance: float) -> float:
    """Return Keys' cubic kernel with a = -1."""
    x = abs(distance)
    return x**3 - 2 * x**2 + 1 if x < 1 else -(x**3) + 5 * x**2 - 8 * x + 4 if x < 2 else 0.0


def sheared_y(array: Array, value: float) -> Array:
    found = np.zeros(array.shape)
    for row, column in itertools.product(*map(range, SIZE)):
        at = row + value * (column + 0.5)
        if -0.5 <= at < SIZE[0] - 0.5:
            near = range(math.floor(at) - 1, math.floor(at) + 3)
            found[row, column] = sum(
                keys(at - k) * array[min(max(k, 0), SIZE[0] - 1), column].astype(float) for k in near
            )
    return np.clip(found, 0, 255)


def stretched(array: Array) -> Array:
    low, high = array.min((0, 1)).astype(float), array.max((0, 1)).astype(float)
    return (array - low) * 255 / (high - low)


def equalized(array: Array) -> Array:
    found = array.astype(float)
    for channel in range(array.shape[2]):
        values = sorted(array[..., channel].ravel().tolist())
        step = (len(values) - values.count(values[-1])) // 255
        if step:
            for row, column in itertools.product(*map(range, SIZE)):
                below = bisect.bisect_left(values, array[row, column, channel])
                found[row, column, channel] = min((step // 2 + below) // step, 255)
    return found


DEFINITIONS: dict[str, tuple[float, Callable[[Array, float], Array]]] = {
    # How far Pillow may be from real numbers: it drops the fraction, and rounds grey values and means before it blends.
    "invert": (0.0, lambda a, v: 255.0 - a),
    "posterize": (
        0.0,
        lambda a, v: np.array([int(f"{p:08b}"[: int(v)].ljust(8, "0"), 2) for p in a.ravel()]).reshape(a.shape),
    ),
    "solarize": (0.0, lambda a, v: np.where(a < v, a, 255.0 - a)),
    "brightness": (1.001, lambda a, v: blend(np.zeros(a.shape), a, 1 + v)),
    "contrast": (1.001, lambda a, v: blend(np.full(a.shape, np.floor(luma(a).mean() + 0.5)), a, 1 + v)),
    "color": (1.001, lambda a, v: blend(np.broadcast_to(luma(a), a.shape), a, 1 + v)),
    "sharpness": (1.001, lambda a, v: blend(smoothed(a), a, 1 + v)),
    "translateX": (0.0, lambda a, v: from_places(a, lambda row, column: (row, column + v * SIZE[1]), 0)),
    "translateY": (0.0, lambda a, v: from_places(a, lambda row, column: (row + v * SIZE[0], column), 0)),
    "rotate": (0.0, lambda a, v: from_places(a, lambda row, column: turn(row, column, v), 128)),
    "shearY": (1.001, sheared_y),
    "autocontrast": (1.001, lambda a, v: stretched(a)),
    "equalize": (0.0, lambda a, v: equalized(a)),
}


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("channels", [1, 3], ids=["grey", "colour"])
@pytest.mark.parametrize("function", LIBRARY, ids=lambda function: f"{function.index}-{function.operation}")
def test_every_function_does_what_it_is_defined_to_do(function: Function, channels: int, sign: int) -> None:
    array = picture(channels)
    slack, definition = DEFINITIONS[function.operation]
    signed = (function.value or 0.0) * (sign if OPERATIONS[function.operation].signed else 1)
    assert np.abs(changed(function, array, sign) - definition(array, signed)).max() <= slack


@pytest.mark.parametrize("channels", [1, 3], ids=["grey", "colour"])
@pytest.mark.parametrize("function", LIBRARY, ids=lambda function: f"{function.index}-{function.operation}")
def test_only_28_and_39_are_identities_and_colour_is_one_for_grey(function: Function, channels: int) -> None:
    array = picture(channels)
    same = [np.array_equal(changed(function, array, sign), array) for sign in (1, -1)]
    nothing = function.index in (28, 39)
    assert function.identity is nothing
    assert same == [nothing or (channels == 1 and function.operation == "color")] * 2


def test_the_library_is_the_published_table() -> None:
    rows = [row.split() for row in TABLE.split(";")]
    assert len(LIBRARY) == len(rows) == 50
    for function, (index, operation, probability, level, value) in zip(LIBRARY, rows, strict=True):
        assert (function.index, function.operation, function.level) == (int(index), operation, int(level))
        assert function.probability == float(probability)
        assert function.value == (None if value == "-" else pytest.approx(float(value), rel=1e-3))


def test_same_functions_do_the_same_and_others_differ() -> None:
    assert all(
        LIBRARY[same_as(index)].value == LIBRARY[index].value for index in range(50) if not LIBRARY[index].identity
    )
    arrays = [np.random.default_rng(k).integers(5, 250, (32, 32, 3)).astype(np.uint8) for k in range(2)]

    def deed(function: Function) -> bytes:
        return b"".join(changed(function, array, sign).tobytes() for array in arrays for sign in (1, -1))

    deeds = [deed(function) for function in LIBRARY]
    for one, other in itertools.combinations(range(50), 2):
        assert (deeds[one] == deeds[other]) == (same_as(one) == same_as(other))
    distinct = {same_as(index) for index in range(50)}
    assert len(distinct - {28}) == 27, (
        "27 that do something and two no-ops make the 29 different entries of the library"
    )
    assert same_as(28) == same_as(39) == 28


@pytest.mark.parametrize("index", [-1, 50])
def test_other_indices_are_refused(index: int) -> None:
    with pytest.raises(
        InvalidValue, match=rf"The index of a transformation function must be in 0\.\.49\. Got {index} instead\."
    ):
        function_at(index)
