"""The operations on tensors, differentiable in the pixels, for an attacker who knows a policy and matches through it.

Inside, pixels are whole numbers of 0..255, as in Pillow: what is rounded or cut there is rounded or cut here, and its
derivative is that of the same formula without the rounding. On images of 8 bits each function is thus within 1/255 of
Pillow, and mostly equal to it; single precision may fall to the other side of a step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
import torch.nn.functional as F
from torch import Tensor

from leaktight.transforms.batched import MOVES, source_pixels
from leaktight.transforms.images import require_shape
from leaktight.transforms.library import Function
from leaktight.transforms.operation import OPERATIONS
from leaktight.transforms.shear import AXES, taps

Change = Callable[[Tensor], Tensor]
_LUMA = (19595, 38470, 7471)
"""The shares of red, green and blue in brightness, in 65536ths: sums of them are exact in single precision."""
_EDGE = 1e-4
"""Where Pillow uses more digits than single precision, a number this close below a step is taken for the step."""


def differentiable(function: Function, shape: tuple[int, ...], sign: int = 1) -> Change:
    """Return a function of the library on (n, channels, height, width) in 0..255, at one sign.

    Posterize and equalize are steps, with no slope of their own: their derivative is that of the identity. The others
    have their own.

    Args:
        function: which one.
        shape: (channels, height, width).
        sign: 1 or -1.

    Example:
        >>> from leaktight.transforms.library import LIBRARY
        >>> differentiable(LIBRARY[15], (1, 1, 2), sign=-1)(torch.tensor([[[[100.0, 200.0]]]])).tolist()
        [[[[50.0, 100.0]]]]
    """
    require_shape(shape)
    name, value = function.operation, (function.value or 0.0) * (sign if OPERATIONS[function.operation].signed else 1)
    if name in MOVES:
        return _mover(name, shape, value)
    if name in AXES:
        return _shearer(name, shape, value)
    change = _CHANGES[name]
    return lambda pixels: change(pixels, value)


def truncate(numbers: Tensor, edge: float = 0.0) -> Tensor:
    """Return numbers without their fraction and cut to 0..255; the derivative is that of the cut alone."""
    cut = numbers.clamp(0, 255)
    return cut + (torch.floor(cut.detach() + edge).clamp(max=255) - cut.detach())


def to_pixels(images: Tensor) -> Tensor:
    """Return images in [0, 1] as whole numbers of 0..255; the derivative is 255."""
    pixels = 255 * images
    return pixels + (pixels.detach().round() - pixels.detach())


def _mover(name: str, shape: tuple[int, ...], value: float) -> Change:
    places = torch.from_numpy(source_pixels(name, shape[1], shape[2], value))
    bare = places >= 0
    index, fill = torch.where(bare, 0, -1 - places), torch.where(bare, places, 0)

    def move(pixels: Tensor) -> Tensor:
        moved = pixels.flatten(-2).index_select(-1, index.to(pixels.device))
        return torch.where(bare.to(pixels.device), fill.to(pixels.device, pixels.dtype), moved).view(pixels.shape)

    return move


def _shearer(name: str, shape: tuple[int, ...], value: float) -> Change:
    sources = taps(name, shape[1], shape[2], value)
    places, offset, bare = (
        torch.from_numpy(sources.places),
        torch.from_numpy(sources.offset),
        torch.from_numpy(sources.bare),
    )

    def shear(pixels: Tensor) -> Tensor:
        flat, d = pixels.flatten(-2), offset.to(pixels.device, pixels.dtype)
        first, second, third, fourth = (flat.index_select(-1, line) for line in places.to(pixels.device))
        inner = 2 * (first - second) + third - fourth + d * (second - first + fourth - third)
        cubic = truncate(second + d * (third - first + d * inner))
        return torch.where(bare.to(pixels.device), 0.0, cubic).view(pixels.shape)

    return shear


def _blend(degenerate: Tensor, pixels: Tensor, value: float) -> Tensor:
    return truncate(degenerate + (1 + value) * (pixels - degenerate))


def _grey(pixels: Tensor) -> Tensor:
    if pixels.shape[-3] == 1:
        return pixels
    red, green, blue = pixels.unbind(-3)
    total = _LUMA[0] * red + _LUMA[1] * green + _LUMA[2] * blue
    return truncate((total + 32768) / 65536).unsqueeze(-3)


def _brightness(pixels: Tensor, value: float) -> Tensor:
    return truncate((1 + value) * pixels)


def _color(pixels: Tensor, value: float) -> Tensor:
    return pixels if pixels.shape[-3] == 1 else _blend(_grey(pixels), pixels, value)


def _contrast(pixels: Tensor, value: float) -> Tensor:
    return _blend(truncate(_grey(pixels).mean((-3, -2, -1), keepdim=True) + 0.5), pixels, value)


def _sharpness(pixels: Tensor, value: float) -> Tensor:
    height, width = pixels.shape[-2:]
    if min(height, width) < 3:
        return pixels
    lines = pixels[..., :-2, :] + pixels[..., 1:-1, :] + pixels[..., 2:, :]
    total = lines[..., :-2] + lines[..., 1:-1] + lines[..., 2:] + 4 * pixels[..., 1:-1, 1:-1]
    inside = F.pad(torch.ones(height - 2, width - 2, dtype=torch.bool, device=pixels.device), (1, 1, 1, 1))
    smooth = torch.where(inside, F.pad(truncate(total / 13 + 0.5), (1, 1, 1, 1)), pixels)
    return _blend(smooth, pixels, value)


def _autocontrast(pixels: Tensor, value: float) -> Tensor:
    low, high = pixels.amin((-2, -1), keepdim=True), pixels.amax((-2, -1), keepdim=True)
    flat = high <= low
    stretched = truncate((pixels - low) * (255 / torch.where(flat, 1.0, high - low)), _EDGE)
    return torch.where(flat, pixels, stretched)


def _equalize(pixels: Tensor, value: float) -> Tensor:
    levels = pixels.detach().flatten(-2).round().long()
    counts = (
        torch.zeros_like(levels[..., :1])
        .expand(*levels.shape[:-1], 256)
        .scatter_add(-1, levels, torch.ones_like(levels))
    )
    below = counts.cumsum(-1) - counts
    step = (levels.shape[-1] - counts.gather(-1, levels.amax(-1, keepdim=True))) // 255
    level = ((step // 2 + below.gather(-1, levels)) // step.clamp(min=1)).clamp(max=255)
    spread = torch.where(step == 0, levels, level).view(pixels.shape)
    return pixels + (spread.to(pixels.dtype) - pixels.detach())


def _posterize(pixels: Tensor, value: float) -> Tensor:
    step = float(2 ** (8 - int(value)))
    kept = torch.floor(pixels.detach().round() / step) * step
    return pixels + (kept - pixels.detach())


def _solarize(pixels: Tensor, value: float) -> Tensor:
    return torch.where(pixels < value, pixels, 255 - pixels)


def _invert(pixels: Tensor, value: float) -> Tensor:
    return 255 - pixels


_CHANGES: Mapping[str, Callable[[Tensor, float], Tensor]] = {
    "invert": _invert,
    "contrast": _contrast,
    "sharpness": _sharpness,
    "autocontrast": _autocontrast,
    "equalize": _equalize,
    "posterize": _posterize,
    "color": _color,
    "brightness": _brightness,
    "solarize": _solarize,
}
