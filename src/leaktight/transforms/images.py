"""Images as bytes: what transformations accept, and what they make of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from leaktight.core.errors import InvalidValue, Refusal
from leaktight.transforms.batched import Pixels

CHANNELS = (1, 3)


class ImageDraws(Protocol):
    """Where a transformation's random numbers come from: one stream for a batch, or one for each image."""

    def integers(self, high: int, shape: Sequence[int] = ()) -> Tensor:
        """Draw whole numbers from 0 to `high` - 1, all equally likely."""

    def uniforms(self, shape: Sequence[int], dtype: torch.dtype = torch.float32) -> Tensor:
        """Draw numbers from [0, 1)."""


def require_images(images: Tensor) -> None:
    """Raise if these are not images of 1 or 3 channels with finite pixels in [0, 1].

    Raises:
        Refusal: the examples are not images at all, or of another number of channels.
        InvalidValue: they are images whose pixels are out of range or no numbers.

    Example:
        >>> require_images(torch.zeros(2, 5))
        Traceback (most recent call last):
        leaktight.core.errors.Refusal: A transformation needs images of shape (n, 1 or 3, height, width). Got shape (2, 5) instead.
    """  # noqa: E501
    if images.dim() != 4 or images.shape[1] not in CHANNELS or 0 in images.shape[2:]:
        raise Refusal(
            f"A transformation needs images of shape (n, 1 or 3, height, width). Got shape {tuple(images.shape)} "
            "instead."
        )
    if not images.is_floating_point():
        raise InvalidValue(
            f"The pixels of a transformation must be floating point numbers in [0, 1]. Got {images.dtype} instead."
        )
    if not len(images):
        return
    low, high = (bound.item() for bound in images.detach().aminmax())
    # Written so that NaN, which is neither below nor above, is caught.
    if not (low >= 0 and high <= 1):
        raise InvalidValue(
            f"The pixels of a transformation must be in [0, 1]. Got numbers from {low:g} to {high:g} instead."
        )


def require_shape(shape: tuple[int, ...]) -> None:
    """Raise if examples of this shape are not images of 1 or 3 channels.

    Raises:
        Refusal: they are not.

    Example:
        >>> require_shape((3, 32, 32))
    """
    if len(shape) != 3 or shape[0] not in CHANNELS:
        raise Refusal(f"A transformation needs images of 1 or 3 channels. Got examples of shape {shape} instead.")


def as_bytes(images: Tensor) -> Pixels:
    """Return images in [0, 1] as an array of their own, rounded to 0..255.

    Example:
        >>> as_bytes(torch.tensor([[[[0.0, 0.5, 1.0]]]])).ravel().tolist()
        [0, 128, 255]
    """
    pixels: Pixels = images.detach().to("cpu", torch.float32).mul(255).round_().to(torch.uint8).contiguous().numpy()
    return pixels


def from_bytes(pixels: Pixels, like: Tensor) -> Tensor:
    """Return an array of 0..255 as images in [0, 1], of a tensor's type and device."""
    return torch.from_numpy(np.require(pixels, requirements=["C", "W"])).to(like.device, like.dtype).div_(255)
