"""Digests: short texts that stand for content and reveal a change or damage."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

LENGTH = 32
"""How many hexadecimal digits: 128 bits."""


def digest(*parts: Any) -> str:
    """Return the digest of texts and bytes; where one ends and the next begins counts.

    Args:
        parts: texts, bytes, or arrays of bytes.

    Example:
        >>> digest("ab", "c") == digest("a", "bc")
        False
    """
    state = hashlib.sha256()
    for part in parts:
        content = part.encode() if isinstance(part, str) else part
        state.update(len(content).to_bytes(8, "big"))
        state.update(content)
    return state.hexdigest()[:LENGTH]


def tensor_parts(tensors: Mapping[str, Tensor]) -> Iterator[Any]:
    """Return what `digest` takes in of named tensors: names, types, shapes and every bit.

    Example:
        >>> digest(*tensor_parts({"w": torch.zeros(2)})) == digest(*tensor_parts({"w": torch.zeros(1, 2)}))
        False
    """
    for name, tensor in tensors.items():
        yield f"{name} {tensor.dtype} {tuple(tensor.shape)}"
        yield tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy()


def digest_archive(values: Mapping[str, Tensor | float], about: Mapping[str, Any]) -> str:
    """Return the digest of everything that an archive holds, the order of its names included.

    Args:
        values: tensors and numbers by name.
        about: what is to be known of them: anything that JSON can hold.
    """
    tensors = {name: value for name, value in values.items() if isinstance(value, Tensor)}
    numbers = [(name, None if isinstance(value, Tensor) else value) for name, value in values.items()]
    return digest(json.dumps(numbers), json.dumps(about, sort_keys=True), *tensor_parts(tensors))
