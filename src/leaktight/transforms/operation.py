"""Operations: the fourteen image changes that transformation functions are made of, on one Pillow image."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping

from PIL import Image, ImageEnhance, ImageOps

from leaktight.core.errors import InvalidValue

LEVELS = 10
BLACK = 0
GREY = 128
"""What a rotation leaves bare is grey, what a shift or a shear leaves bare is black."""

Change = Callable[[Image.Image, float], Image.Image]


@dataclasses.dataclass(frozen=True)
class Operation:
    r"""One way to change an image, and how strongly at each of ten levels.

    Args:
        name: the operation's name in the published library.
        signed: whether each call draws a sign: to the left or to the right, darker or brighter.
        magnitudes: the value at levels 0 to 9; None for an operation without a parameter.
        change: (image, value) to image; the value comes with its sign.

    Example:
        >>> OPERATIONS["posterize"].magnitudes
        (8.0, 8.0, 7.0, 7.0, 6.0, 6.0, 5.0, 5.0, 4.0, 4.0)
        >>> image = Image.new("L", (4, 4), 100)
        >>> OPERATIONS["brightness"].apply(image, 0.5, -1).getpixel((0, 0))
        50
    """

    name: str
    signed: bool
    magnitudes: tuple[float, ...] | None
    change: Change = dataclasses.field(repr=False, compare=False)

    def value(self, level: int) -> float | None:
        """Return the value at a level from 0 to 9; None if the operation has no parameter."""
        return None if self.magnitudes is None else self.magnitudes[level]

    def apply(self, image: Image.Image, value: float | None, sign: int) -> Image.Image:
        """Return the changed image.

        Args:
            image: grey (`L`) or colour (`RGB`).
            value: how strongly, in the units of `magnitudes`; ignored if there are none.
            sign: 1 or -1, which way; ignored if the operation has no sign.
        """
        if image.mode not in ("L", "RGB"):
            raise InvalidValue(
                f"The image for {self.name} must be grey (L) or colour (RGB). Got mode {image.mode} instead."
            )
        if self.magnitudes is not None and value is None:
            raise InvalidValue(f"The value of {self.name} must be a number. Got none instead.")
        return self.change(image, (value or 0.0) * (sign if self.signed else 1))


def _even(first: float, last: float) -> tuple[float, ...]:
    return tuple(first + (last - first) * level / (LEVELS - 1) for level in range(LEVELS))


def _affine(image: Image.Image, matrix: tuple[float, ...], how: Image.Resampling) -> Image.Image:
    return image.transform(image.size, Image.Transform.AFFINE, matrix, how, fillcolor=_fill(image, BLACK))


def _fill(image: Image.Image, level: int) -> int | tuple[int, int, int]:
    return (level, level, level) if image.mode == "RGB" else level


def shear_x(image: Image.Image, value: float) -> Image.Image:
    """Output pixel (x, y) is input pixel (x + value * y, y), between pixels by cubic interpolation."""
    return _affine(image, (1, value, 0, 0, 1, 0), Image.Resampling.BICUBIC)


def shear_y(image: Image.Image, value: float) -> Image.Image:
    """Output pixel (x, y) is input pixel (x, y + value * x), between pixels by cubic interpolation."""
    return _affine(image, (1, 0, 0, value, 1, 0), Image.Resampling.BICUBIC)


def translate_x(image: Image.Image, value: float) -> Image.Image:
    """Output pixel (x, y) is the input pixel nearest to (x + value * width, y)."""
    return _affine(image, (1, 0, value * image.width, 0, 1, 0), Image.Resampling.NEAREST)


def translate_y(image: Image.Image, value: float) -> Image.Image:
    """Output pixel (x, y) is the input pixel nearest to (x, y + value * height)."""
    return _affine(image, (1, 0, 0, 0, 1, value * image.height), Image.Resampling.NEAREST)


def rotate(image: Image.Image, value: float) -> Image.Image:
    """Turn counter-clockwise about the centre, by the nearest pixel."""
    return image.rotate(value, Image.Resampling.NEAREST, fillcolor=_fill(image, GREY))


_SHEARS, _SHIFTS, _TURNS = _even(0.0, 0.3), _even(0.0, 150 / 331), _even(0.0, 30.0)
_ENHANCEMENTS, _THRESHOLDS = _even(0.0, 0.5), _even(256.0, 0.0)
_BITS = tuple(float(round(bits)) for bits in _even(8.0, 4.0))

_ALL = (
    Operation("invert", False, None, lambda image, _: ImageOps.invert(image)),
    Operation("contrast", True, _ENHANCEMENTS, lambda image, value: ImageEnhance.Contrast(image).enhance(1 + value)),
    Operation("rotate", False, _TURNS, rotate),
    Operation("translateX", True, _SHIFTS, translate_x),
    Operation("translateY", True, _SHIFTS, translate_y),
    Operation("sharpness", True, _ENHANCEMENTS, lambda image, value: ImageEnhance.Sharpness(image).enhance(1 + value)),
    Operation("shearX", True, _SHEARS, shear_x),
    Operation("shearY", True, _SHEARS, shear_y),
    Operation("autocontrast", False, None, lambda image, _: ImageOps.autocontrast(image)),
    Operation("equalize", False, None, lambda image, _: ImageOps.equalize(image)),
    Operation("posterize", False, _BITS, lambda image, value: ImageOps.posterize(image, int(value))),
    Operation("color", True, _ENHANCEMENTS, lambda image, value: ImageEnhance.Color(image).enhance(1 + value)),
    Operation(
        "brightness", True, _ENHANCEMENTS, lambda image, value: ImageEnhance.Brightness(image).enhance(1 + value)
    ),
    Operation("solarize", False, _THRESHOLDS, lambda image, value: ImageOps.solarize(image, value)),  # type: ignore[arg-type]
)
OPERATIONS: Mapping[str, Operation] = {operation.name: operation for operation in _ALL}
"""Every operation of the published library, by name."""
