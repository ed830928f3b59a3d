"""Operations: their magnitudes, signs, fills and refusals; what single functions do is in test_library."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from leaktight.core.errors import InvalidValue
from leaktight.transforms import OPERATIONS

NAMES = "invert contrast rotate translateX translateY sharpness shearX shearY autocontrast equalize posterize color brightness solarize"
NOISE = np.random.default_rng(0).integers(1, 256, (20, 30, 3)).astype(np.uint8)


def image(channels: int) -> Image.Image:
    return Image.fromarray(NOISE[..., 0] if channels == 1 else NOISE)


def test_there_are_fourteen_by_name() -> None:
    assert list(OPERATIONS) == NAMES.split()
    assert all(operation.name == name for name, operation in OPERATIONS.items())


@pytest.mark.parametrize(
    ("name", "first", "last"),
    [
        ("shearX", 0, 0.3),
        ("shearY", 0, 0.3),
        ("translateX", 0, 150 / 331),
        ("translateY", 0, 150 / 331),
        ("rotate", 0, 30),
        ("color", 0, 0.5),
        ("contrast", 0, 0.5),
        ("sharpness", 0, 0.5),
        ("brightness", 0, 0.5),
        ("solarize", 256, 0),
    ],
)
def test_magnitudes_are_ten_even_steps(name: str, first: float, last: float) -> None:
    assert OPERATIONS[name].magnitudes == pytest.approx(np.linspace(first, last, 10))


def test_posterize_keeps_eight_to_four_bits_and_three_have_no_parameter() -> None:
    assert OPERATIONS["posterize"].magnitudes == (8, 8, 7, 7, 6, 6, 5, 5, 4, 4)
    assert [name for name, operation in OPERATIONS.items() if operation.magnitudes is None] == [
        "invert",
        "autocontrast",
        "equalize",
    ]
    assert OPERATIONS["invert"].value(7) is None


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("name", NAMES.split())
def test_the_sign_matters_exactly_where_there_is_one(name: str, channels: int) -> None:
    operation = OPERATIONS[name]
    ways = [operation.apply(image(channels), operation.value(5), sign).tobytes() for sign in (1, -1)]
    signed = name.startswith(("shear", "translate")) or name in ("color", "contrast", "sharpness", "brightness")
    assert operation.signed is signed
    assert (ways[0] != ways[1]) is (signed and not (name == "color" and channels == 1))


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("name", NAMES.split())
def test_kind_and_size_stay_and_the_input_too(name: str, channels: int) -> None:
    before = image(channels)
    found = OPERATIONS[name].apply(before, OPERATIONS[name].value(9), 1)
    assert (found.mode, found.size) == (before.mode, before.size)
    assert before.tobytes() == image(channels).tobytes()


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("axis", [0, 1])
def test_a_shift_moves_by_the_stated_fraction_and_leaves_black(axis: int, sign: int) -> None:
    name = ("translateY", "translateX")[axis]
    for level in range(10):
        fraction = OPERATIONS[name].value(level)
        assert fraction is not None
        found = np.asarray(OPERATIONS[name].apply(image(1), fraction, sign))
        moved = int((found == 0).all(1 - axis).sum())
        assert abs(moved - fraction * found.shape[axis]) <= 0.5
        kept = found.shape[axis] - moved
        here, there = (slice(0, kept), slice(moved, None)) if sign > 0 else (slice(moved, None), slice(0, kept))
        grey = np.asarray(image(1))
        assert np.array_equal(
            found[here] if axis == 0 else found[:, here], grey[there] if axis == 0 else grey[:, there]
        )


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("level", [1, 5, 9])
def test_one_shear_is_the_other_with_rows_and_columns_changed(level: int, sign: int) -> None:
    along, across = OPERATIONS["shearX"], OPERATIONS["shearY"]
    turned = image(3).transpose(Image.Transpose.TRANSPOSE)
    found = across.apply(turned, across.value(level), sign).transpose(Image.Transpose.TRANSPOSE)
    assert np.array_equal(np.asarray(along.apply(image(3), along.value(level), sign)), np.asarray(found))


@pytest.mark.parametrize("channels", [1, 3])
def test_a_turn_leaves_grey_corners_and_goes_counter_clockwise(channels: int) -> None:
    white = Image.new("L" if channels == 1 else "RGB", (21, 21))
    white.paste(255 if channels == 1 else (255, 255, 255), (18, 10, 21, 11))
    found = np.asarray(OPERATIONS["rotate"].apply(white, 30.0, -1)).reshape(21, 21, channels)
    assert (found[0, 0] == 128).all()
    rows = np.nonzero((found == 255).all(2))[0]
    assert rows.max() < 10


def test_wrong_input_is_refused() -> None:
    with pytest.raises(
        InvalidValue, match=r"The image for invert must be grey \(L\) or colour \(RGB\)\. Got mode RGBA instead\."
    ):
        OPERATIONS["invert"].apply(Image.new("RGBA", (2, 2)), None, 1)
    with pytest.raises(InvalidValue, match=r"The value of rotate must be a number\. Got none instead\."):
        OPERATIONS["rotate"].apply(image(1), None, 1)
