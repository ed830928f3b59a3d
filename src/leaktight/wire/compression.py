"""Compression: activations as fewer bytes, at the price of rounding; gradients always go as the defence made them."""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor

from leaktight.core.errors import InvalidValue
from leaktight.learning.boundary import ACTIVATIONS
from leaktight.wire.fault import PeerFault

Compression = Literal["none", "float16", "int8"]
SCALE = "scale"
_LEVELS = 127
_BYTES: dict[Compression, int] = {"none": 4, "float16": 2, "int8": 1}
_TYPES: dict[Compression, torch.dtype] = {"none": torch.float32, "float16": torch.float16, "int8": torch.int8}


def compress(activations: Tensor, how: Compression) -> dict[str, Tensor]:
    r"""Return what stands for activations on the wire.

    `float16` rounds each number to half precision. `int8` has for each row \(a\) a scale \(s = \max_j |a_j| / 127\) and
    whole numbers \(q_j = \mathrm{round}(a_j / s)\), so that no entry is off by more than \(s / 2\). What the feature
    party learns from stays exact: its gradient is applied to the activations before rounding.

    Args:
        activations: one row per example.
        how: `none`, `float16` or `int8`.

    Raises:
        InvalidValue: half precision has no such large number.

    Example:
        >>> compress(torch.tensor([[1.0, -2.54]]), "int8")["activations"]
        tensor([[  50, -127]], dtype=torch.int8)
    """
    if how == "none":
        return {ACTIVATIONS: activations.float()}
    if how == "float16":
        halves = activations.half()
        if not torch.isfinite(halves).all() and torch.isfinite(activations).all():
            raise InvalidValue(
                "The activations must be below 65504 for `float16`. They are not; set `compression` to `int8`."
            )
        return {ACTIVATIONS: halves}
    rows = activations.float().flatten(1)
    scale = rows.abs().amax(1) / _LEVELS if rows.shape[1] else rows.new_zeros(len(rows))
    # A row of zeros has no scale, and needs none.
    levels = torch.round(rows / scale.clamp(min=torch.finfo(torch.float32).tiny)[:, None]).clamp(-_LEVELS, _LEVELS)
    return {ACTIVATIONS: levels.to(torch.int8).reshape(activations.shape), SCALE: scale}


def decompress(tensors: dict[str, Tensor], how: Compression, sender: str) -> dict[str, Tensor]:
    """Undo `compress`, and check what only this codec knows: the agreed type, and the scales.

    Names, shape and values are left to the party that takes the activations (`learning.boundary.accept`).

    Raises:
        PeerFault: the tensors are not of the agreed compression.
    """
    activations = tensors.get(ACTIVATIONS)
    if activations is None:
        return tensors
    if activations.dtype != _TYPES[how]:
        raise PeerFault(
            f"Activations from {sender} must come as {_TYPES[how]}, as agreed by `compression`. Got "
            f"{activations.dtype} instead."
        )
    if how != "int8":
        return {**tensors, ACTIVATIONS: activations.float()}
    scale, others = tensors.get(SCALE), {name: tensor for name, tensor in tensors.items() if name != SCALE}
    if scale is None or scale.dtype != torch.float32 or activations.dim() < 1 or scale.shape != activations.shape[:1]:
        raise PeerFault(f"Activations from {sender} must come with one scale for each row. They do not.")
    rows = activations.flatten(1) if activations.dim() > 1 else activations[:, None]
    return {**others, ACTIVATIONS: (rows.float() * scale[:, None]).reshape(activations.shape)}


def size(rows: int, shape: tuple[int, ...], how: Compression) -> int:
    """Return how many bytes of numbers stand for so many rows."""
    return rows * (math.prod(shape) * _BYTES[how] + (4 if how == "int8" else 0))
