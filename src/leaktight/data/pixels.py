"""Pixels: arrays of any usual layout and type to images in [0, 1], channels first."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from leaktight.core.errors import InvalidValue

Layout = Literal["auto", "channels_first", "channels_last"]
Resize = Literal["nearest", "bicubic"]
CHANNELS = (1, 3)


def as_inputs(array: NDArray[Any], what: str, layout: Layout = "auto", scale: float | None = None) -> Tensor:
    """Return an array as float inputs: images for three or four dimensions, table rows for two.

    Args:
        array: (examples, height, width) for grey images, or four dimensions with 1 or 3 channels, or (examples,
            columns).
        what: whose array it is, for the error.
        layout: where the channels are. `auto` looks for a dimension of 1 or 3; if first and last both fit, whole
            numbers have their channels last and fractions first, as image files and networks do.
        scale: what pixels are divided by; None means 255 for whole numbers and 1 for fractions.

    Example:
        >>> as_inputs(np.full((2, 4, 5, 3), 51, dtype=np.uint8), "It").shape
        torch.Size([2, 3, 4, 5])
    """
    if array.dtype.kind not in "fiub":
        raise InvalidValue(f"{what} must be numbers. Got {array.dtype} instead.")
    if array.ndim not in (2, 3, 4):
        raise InvalidValue(
            f"{what} must have 2 dimensions for a table, 3 or 4 for images. Got shape {array.shape} instead."
        )
    whole = array.dtype.kind in "iu"
    if array.ndim == 4:
        array = _channels_first(array, what, layout, whole)
    elif array.ndim == 3:
        array = array[:, np.newaxis]
    # A copy always: the caller's own numbers must not change with ours, and torch warns of arrays that are read-only.
    inputs = torch.from_numpy(np.array(array, dtype=np.float32, order="C"))
    return inputs.div_(scale if scale is not None else 255.0 if whole and array.ndim == 4 else 1.0)


def _channels_first(array: NDArray[Any], what: str, layout: Layout, whole: bool) -> NDArray[Any]:
    first, last = array.shape[1] in CHANNELS, array.shape[3] in CHANNELS
    if layout == "auto":
        if not first and not last:
            raise InvalidValue(f"{what} must have 1 or 3 channels, first or last. Got shape {array.shape} instead.")
        layout = "channels_last" if last and (whole or not first) else "channels_first"
    return array.transpose(0, 3, 1, 2) if layout == "channels_last" else array


def fit(images: Tensor, size: int | None, resize: Resize = "bicubic") -> Tensor:
    """Return the middle square of each image at a side of `size` pixels.

    Bicubic averages over the pixels that a smaller image merges and is clamped to [0, 1], which it may overshoot.

    Args:
        images: (examples, channels, height, width) in [0, 1].
        size: the side in pixels; None leaves images as they are.
        resize: `nearest` repeats or drops pixels, `bicubic` interpolates.

    Example:
        >>> fit(torch.eye(2).view(1, 1, 2, 2), 4, "nearest")[0, 0, 0].tolist()
        [1.0, 1.0, 0.0, 0.0]
    """
    height, width = images.shape[2:]
    if size is None or height == width == size:
        return images
    side = min(height, width)
    top, left = (height - side) // 2, (width - side) // 2
    square = images[:, :, top : top + side, left : left + side]
    if resize == "nearest":
        return F.interpolate(square, size=(size, size), mode="nearest-exact")
    return F.interpolate(square, size=(size, size), mode="bicubic", antialias=True).clamp(0, 1)
