"""Payloads: named tensors, or words, as a safetensors file; never a pickle, and whatever came in wrong is one error."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import safetensors
import safetensors.torch
from torch import Tensor

from leaktight.core.archive import pack, unpack
from leaktight.core.errors import LeaktightError
from leaktight.core.message import Tensors
from leaktight.wire.fault import PeerFault

HEADER_LIMIT = 4096
"""How long the header of a payload of tensors may be: far more than the few that a step has need, far less than a million names."""
_FAULTS = (safetensors.SafetensorError, ValueError, KeyError, TypeError, AttributeError, RuntimeError, OverflowError)


def pack_tensors(tensors: Tensors) -> bytes:
    """Return named tensors as a payload.

    Example:
        >>> import torch
        >>> unpack_tensors(pack_tensors({"gradient": torch.ones(2)}), "label-party")
        {'gradient': tensor([1., 1.])}
    """
    return safetensors.torch.save({name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()})


def unpack_tensors(payload: bytes, sender: str) -> dict[str, Tensor]:
    """Return the tensors of a payload, by name.

    Raises:
        PeerFault: it is no whole safetensors file, or one with more names than any step needs.
    """
    if int.from_bytes(payload[:8], "little") > HEADER_LIMIT:
        raise PeerFault(f"The payload from {sender} must have a header of at most {HEADER_LIMIT} bytes. Got a longer one.")
    try:
        found: dict[str, Tensor] = safetensors.torch.load(payload)
    except _FAULTS:
        raise PeerFault(f"The payload from {sender} must be a whole safetensors file. It is not.") from None
    return found


def pack_words(words: Mapping[str, Any]) -> bytes:
    """Return words and numbers as a payload.

    Example:
        >>> unpack_words(pack_words({"role": "label-party"}), "label-party")
        {'role': 'label-party'}
    """
    return pack({}, words)


def unpack_words(payload: bytes, sender: str) -> dict[str, Any]:
    """Return the words and numbers of a payload.

    Raises:
        PeerFault: it holds none.
    """
    try:
        values, words = unpack(payload)
        if values:
            raise LeaktightError("It holds tensors too.")
    except (LeaktightError, *_FAULTS):
        # A text that is nested too deeply ends in a RecursionError, which is a RuntimeError.
        raise PeerFault(f"The payload from {sender} must be words as leaktight packs them. It is not.") from None
    return words
