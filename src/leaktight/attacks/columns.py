"""Columns: a convolution over few channels as a product of matrices.

A search differentiates the first layer of a small network twice at about half the cost.

Convolution kernels run over channels. A gradient with respect to an image has three, or one, and a gradient of a
candidate's own weights has as few on its other side, so that most of such a kernel idles. What each place of the output
sees is laid out once instead, as a column, and serves the output, the gradient of the weights and the derivative of
both; gradients of all of them are added up before they are folded back.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode

MOST_CHANNELS, MOST_NUMBERS = 4, 1 << 18
"""Up to how many input channels columns pay, and how many numbers those of one example may have."""
_Window = tuple[tuple[int, int], tuple[int, int], tuple[int, int]]
"""Kernel, stride and padding."""


class AsColumns(TorchFunctionMode):
    """Computes convolutions over few channels by columns, in the block.

    Example:
        >>> images, weight = torch.rand(2, 3, 8, 8), torch.rand(4, 3, 3, 3)
        >>> with AsColumns():
        ...     output = F.conv2d(images, weight, padding=1)
        >>> torch.allclose(output, F.conv2d(images, weight, padding=1), atol=1e-5)
        True
    """

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Take convolutions that fit, and leave everything else as it is."""
        if func is torch.conv2d:
            return _convolve(*args, **(kwargs or {}))
        return func(*args, **(kwargs or {}))


def _convolve(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: int | Sequence[int] = 1,
    padding: int | str | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
) -> Tensor:
    plain = groups == 1 and _pair(dilation) == (1, 1) and input.ndim == 4 and weight.shape[1] <= MOST_CHANNELS
    if not plain or isinstance(padding, str):
        return torch.conv2d(input, weight, bias, stride, padding, dilation, groups)
    window = (_pair(weight.shape[2:]), _pair(stride), _pair(padding))
    height, width = _places(input.shape[2:], window)
    if math.prod(weight.shape[1:]) * height * width > MOST_NUMBERS:
        return torch.conv2d(input, weight, bias, stride, padding)
    # A product for each example: torch folds one for all into shapes that double its cost.
    every = weight.flatten(1).expand(len(input), -1, -1)
    output = _multiply(every, _unfold(input, window)).reshape(len(input), -1, height, width)
    return output if bias is None else output + bias[:, None, None]


class _Unfold(torch.autograd.Function):
    """Images to columns: (images, channels, height, width) to (images, numbers of a window, places)."""

    @staticmethod
    def forward(images: Tensor, window: _Window) -> Tensor:
        (high, wide), (down, right), (top, left) = window
        height, width = _places(images.shape[2:], window)
        padded = F.pad(images, (left, left, top, top))
        each, channel, row, column = padded.stride()
        windows = padded.as_strided(
            (*images.shape[:2], high, wide, height, width), (each, channel, row, column, down * row, right * column)
        )
        return windows.reshape(len(images), -1, height * width)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, _Window], output: Tensor) -> None:
        ctx.size, ctx.window = tuple(inputs[0].shape[2:]), inputs[1]

    @staticmethod
    def backward(ctx: Any, gradients: Tensor) -> tuple[Tensor, None]:
        return _fold(gradients, ctx.size, ctx.window), None

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int, None], images: Tensor, window: _Window) -> tuple[Tensor, int]:
        return _map_rows(lambda every: _unfold(every, window), images, in_dims[0])


class _Fold(torch.autograd.Function):
    """Columns to images, what several columns say of a pixel added up: the derivative of `_Unfold`."""

    @staticmethod
    def forward(columns: Tensor, size: tuple[int, int], window: _Window) -> Tensor:
        kernel, stride, padding = window
        return F.fold(columns, size, kernel, stride=stride, padding=padding)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, tuple[int, int], _Window], output: Tensor) -> None:
        ctx.window = inputs[2]

    @staticmethod
    def backward(ctx: Any, gradients: Tensor) -> tuple[Tensor, None, None]:
        return _unfold(gradients, ctx.window), None, None

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[int, None, None], columns: Tensor, size: tuple[int, int], window: _Window
    ) -> tuple[Tensor, int]:
        return _map_rows(lambda every: _fold(every, size, window), columns, in_dims[0])


class _Multiply(torch.autograd.Function):
    """The product of matrices, weights times columns.

    It and its derivative are each other's derivatives and never transpose a result: torch's own product does, and pays
    for it when gradients that lie in memory in different ways are added up.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(weights: Tensor, columns: Tensor) -> Tensor:
        return torch.bmm(weights, columns)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor], output: Tensor) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, gradients: Tensor) -> tuple[Tensor, Tensor]:
        weights, columns = ctx.saved_tensors
        return _multiply_transposed(gradients, columns), _multiply(weights.mT, gradients)


class _MultiplyTransposed(torch.autograd.Function):
    """The product of a matrix and a transposed one: the gradient of weights, from that of the output and columns."""

    generate_vmap_rule = True

    @staticmethod
    def forward(outputs: Tensor, columns: Tensor) -> Tensor:
        return torch.bmm(outputs, columns.mT)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor], output: Tensor) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, gradients: Tensor) -> tuple[Tensor, Tensor]:
        outputs, columns = ctx.saved_tensors
        return _multiply(gradients, columns), _multiply(gradients.mT, outputs)


def _unfold(images: Tensor, window: _Window) -> Tensor:
    columns: Tensor = _Unfold.apply(images, window)  # type: ignore[no-untyped-call]
    return columns


def _fold(columns: Tensor, size: tuple[int, int], window: _Window) -> Tensor:
    images: Tensor = _Fold.apply(columns, size, window)  # type: ignore[no-untyped-call]
    return images


def _multiply(weights: Tensor, columns: Tensor) -> Tensor:
    outputs: Tensor = _Multiply.apply(weights, columns)  # type: ignore[no-untyped-call]
    return outputs


def _multiply_transposed(outputs: Tensor, columns: Tensor) -> Tensor:
    weights: Tensor = _MultiplyTransposed.apply(outputs, columns)  # type: ignore[no-untyped-call]
    return weights


def _map_rows(work: Callable[[Tensor], Tensor], tensors: Tensor, where: int) -> tuple[Tensor, int]:
    """Let all rows of a map be examples of one call."""
    rows = tensors.movedim(where, 0)
    results = work(rows.flatten(0, 1))
    return results.view(*rows.shape[:2], *results.shape[1:]), 0


def _places(size: Sequence[int], window: _Window) -> tuple[int, int]:
    """Return how many places the output has."""
    height, width = (
        (long + 2 * edge - kernel) // step + 1 for long, kernel, step, edge in zip(size, *window, strict=True)
    )
    return height, width


def _pair(value: int | Sequence[int]) -> tuple[int, int]:
    one, other = (value, value) if isinstance(value, int) else value if len(value) == 2 else (*value, *value)
    return int(one), int(other)
