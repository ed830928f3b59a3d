"""Shears: where each output pixel lies between four input pixels, and Pillow's cubic through them."""

from __future__ import annotations

import dataclasses
import functools

import numpy as np
from numpy.typing import NDArray

_KEPT = 64
AXES = {"shearX": 1, "shearY": 0}
"""Along which axis of (height, width) a shear moves pixels."""


@dataclasses.dataclass(frozen=True, eq=False)
class Taps:
    """The four input pixels in a line that each output pixel is read from.

    Args:
        places: (4, pixels), places in the flat image; beyond an edge the edge pixel is repeated.
        offset: (pixels,), how far from the second towards the third of them, in [0, 1).
        bare: (pixels,), whether the output pixel lies outside the image and is black.
    """

    places: NDArray[np.int64]
    offset: NDArray[np.float64]
    bare: NDArray[np.bool_]


@functools.lru_cache(_KEPT)
def taps(name: str, height: int, width: int, value: float) -> Taps:
    """Return the taps of `shearX` or `shearY` by a signed coefficient.

    Example:
        >>> found = taps("shearX", 1, 3, 1.5)
        >>> found.places[1].tolist(), found.offset.tolist(), found.bare.tolist()
        ([0, 1, 2], [0.75, 0.75, 0.75], [False, False, True])
    """
    axis = AXES[name]
    rows, columns = np.indices((height, width))
    moving, across, length = (columns, rows, width) if axis == 1 else (rows, columns, height)
    centre = (moving + 0.5) + value * (across + 0.5)
    bare = (centre < 0) | (centre >= length)
    start = np.floor(centre - 0.5)
    line = np.clip(start.astype(np.int64) + np.arange(-1, 3)[:, None, None], 0, length - 1)
    places = rows * width + line if axis == 1 else line * width + columns
    return Taps(places.reshape(4, -1), (centre - 0.5 - start).ravel(), bare.ravel())


def shear(pixels: NDArray[np.uint8], sources: Taps) -> NDArray[np.uint8]:
    r"""Return (images, channels, height, width) read at taps, bit for bit as Pillow does.

    With pixels \(v_1, \ldots, v_4\) and the offset d the cubic is

    .. math:: v_2 + d \, (v_3 - v_1 + d \, (2 (v_1 - v_2) + v_3 - v_4 + d \, (v_2 - v_1 + v_4 - v_3))),

    cut to 0..255 and its fraction dropped.
    """
    flat = pixels.reshape(*pixels.shape[:2], -1)
    first, second, third, fourth = (np.take(flat, places, axis=2).astype(np.int16) for places in sources.places)
    inner = (second - first + fourth - third) * sources.offset
    inner += 2 * (first - second) + third - fourth
    inner *= sources.offset
    inner += third - first
    inner *= sources.offset
    inner += second
    inner[:, :, sources.bare] = 0
    cubic: NDArray[np.uint8] = np.clip(inner, 0, 255, out=inner).astype(np.uint8).reshape(pixels.shape)
    return cubic
