"""The operations on many images at once, bit for bit what Pillow makes of each one alone.

What treats every pixel alike is one Pillow call over all images laid side by side; a shift or a turn is an index that
Pillow drew once; the rest is Pillow's own arithmetic on arrays.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from leaktight.transforms.operation import OPERATIONS
from leaktight.transforms.shear import AXES, shear, taps

Pixels = NDArray[np.uint8]
"""(images, channels, height, width), 0 to 255."""
_KEPT = 64
MOVES = frozenset({"translateX", "translateY", "rotate"})
"""What puts whole pixels elsewhere."""


def apply_operation(name: str, pixels: Pixels, value: float | None, sign: int) -> Pixels:
    """Return every image changed by one operation.

    Args:
        name: which operation.
        pixels: images of 1 or 3 channels.
        value: how strongly; None for an operation without a parameter.
        sign: 1 or -1, for operations that have a sign.

    Example:
        >>> apply_operation("invert", np.zeros((2, 1, 2, 2), dtype=np.uint8), None, 1).min()
        np.uint8(255)
    """
    if not pixels.size:
        return pixels.copy()
    operation = OPERATIONS[name]
    if name in _POINTWISE:
        rows = pixels.reshape(len(pixels), -1)
        return np.asarray(operation.apply(Image.fromarray(rows), value, sign)).reshape(pixels.shape)
    signed = (value or 0.0) * (sign if operation.signed else 1)
    if name in MOVES:
        return _move(pixels, source_pixels(name, pixels.shape[2], pixels.shape[3], signed))
    if name in AXES:
        return shear(pixels, taps(name, pixels.shape[2], pixels.shape[3], signed))
    return _OWN[name](pixels, signed)


@functools.lru_cache(_KEPT)
def source_pixels(name: str, height: int, width: int, value: float) -> NDArray[np.int64]:
    """Return where each output pixel of a shift or turn comes from.

    That is -1 - place in the flat image, or the fill level where bare.

    Example:
        >>> source_pixels("translateX", 1, 4, 0.25).tolist()
        [-2, -3, -4, 0]
    """
    places = -1 - np.arange(height * width, dtype=np.int32).reshape(height, width)
    return np.asarray(OPERATIONS[name].change(Image.fromarray(places), value)).ravel().astype(np.int64)


def _move(pixels: Pixels, places: NDArray[np.int64]) -> Pixels:
    flat, bare = pixels.reshape(*pixels.shape[:2], -1), places >= 0
    moved = np.take(flat, np.where(bare, 0, -1 - places), axis=2)
    np.copyto(moved, places.astype(np.uint8), where=bare)
    return moved.reshape(pixels.shape)


def as_image(pixels: Pixels) -> Image.Image:
    """Return (channels, height, width) as a Pillow image, grey or colour."""
    return Image.fromarray(pixels[0] if len(pixels) == 1 else np.ascontiguousarray(pixels.transpose(1, 2, 0)))


def as_pixels(image: Image.Image) -> Pixels:
    """Return a Pillow image, grey or colour, as (channels, height, width)."""
    array = np.asarray(image)
    return array[np.newaxis] if array.ndim == 2 else array.transpose(2, 0, 1)


def _blend(degenerate: Pixels, pixels: Pixels, value: float) -> Pixels:
    first, second = (Image.fromarray(array.reshape(len(array), -1)) for array in (degenerate, pixels))
    return np.asarray(Image.blend(first, second, 1 + value)).reshape(pixels.shape)


def _grey(pixels: Pixels) -> Pixels:
    """Return the brightness of each pixel, with one channel."""
    if pixels.shape[1] == 1:
        return pixels
    bands = [Image.fromarray(pixels[:, channel].reshape(len(pixels), -1)) for channel in range(3)]
    return np.asarray(Image.merge("RGB", bands).convert("L")).reshape(len(pixels), 1, *pixels.shape[2:])


def _color(pixels: Pixels, value: float) -> Pixels:
    return _blend(np.broadcast_to(_grey(pixels), pixels.shape), pixels, value)


def _contrast(pixels: Pixels, value: float) -> Pixels:
    grey = _grey(pixels).reshape(len(pixels), -1)
    means = (grey.sum(1, dtype=np.int64) / grey.shape[1] + 0.5).astype(np.uint8)
    return _blend(np.broadcast_to(means[:, None, None, None], pixels.shape), pixels, value)


def _sharpness(pixels: Pixels, value: float) -> Pixels:
    smooth = pixels.copy()
    if min(pixels.shape[2:]) > 2:
        smooth[:, :, 1:-1, 1:-1] = _smooth(pixels.astype(np.uint16))
    return _blend(smooth, pixels, value)


def _smooth(pixels: NDArray[np.uint16]) -> NDArray[np.uint16]:
    """Return the inside of Pillow's SMOOTH, which leaves borders.

    That is the centre five times and its eight neighbours once, divided by 13 and rounded.
    """
    lines = pixels[:, :, :-2] + pixels[:, :, 1:-1] + pixels[:, :, 2:]
    total = lines[:, :, :, :-2] + lines[:, :, :, 1:-1] + lines[:, :, :, 2:] + 4 * pixels[:, :, 1:-1, 1:-1]
    smooth: NDArray[np.uint16] = (total + 6) // 13
    return smooth


def _autocontrast(pixels: Pixels, value: float) -> Pixels:
    flat = pixels.reshape(-1, pixels.shape[2] * pixels.shape[3])
    low, high = flat.min(1).astype(np.float64)[:, None], flat.max(1).astype(np.float64)[:, None]
    flatness = high <= low
    scale = 255.0 / np.where(flatness, 1.0, high - low)
    levels = np.arange(256, dtype=np.float64)
    table = np.clip(np.trunc(levels * scale + -low * scale), 0, 255)
    return _look_up(pixels, np.where(flatness, levels, table).astype(np.uint8), _entries(flat))


def _equalize(pixels: Pixels, value: float) -> Pixels:
    flat = pixels.reshape(-1, pixels.shape[2] * pixels.shape[3])
    entries = _entries(flat)
    counts = np.bincount(entries.ravel(), minlength=256 * len(flat)).reshape(len(flat), 256)
    highest = counts[np.arange(len(flat)), flat.max(1)]
    step = ((flat.shape[1] - highest) // 255)[:, None]
    below = np.cumsum(counts, axis=1) - counts
    table = np.minimum((step // 2 + below) // np.maximum(step, 1), 255)
    return _look_up(pixels, np.where(step == 0, np.arange(256), table).astype(np.uint8), entries)


def _entries(flat: Pixels) -> NDArray[np.int64]:
    """Return each pixel's place in a table with a row of 256 for every channel of every image."""
    return np.arange(0, 256 * len(flat), 256)[:, None] + flat


def _look_up(pixels: Pixels, table: Pixels, entries: NDArray[np.int64]) -> Pixels:
    return np.take(table.ravel(), entries).reshape(pixels.shape)


_POINTWISE = frozenset({"invert", "posterize", "solarize", "brightness"})
_OWN: Mapping[str, Callable[[Pixels, float], Pixels]] = {
    "color": _color,
    "contrast": _contrast,
    "sharpness": _sharpness,
    "autocontrast": _autocontrast,
    "equalize": _equalize,
}
