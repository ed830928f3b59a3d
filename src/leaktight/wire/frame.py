"""Frames: what the parties send each other. A byte that says what it is, the step, and a safetensors file; no pickle.

gRPC does the rest: it says how long each message is, refuses one above `max_receive_message_length` before it is in
memory, and its method names the protocol's version. What it cannot do is done here: a message of words gets a limit far
below that of tensors, because parsed JSON takes many times the memory of its text; and after the handshake tensors get
the limit of the agreed shape, which is not yet known when gRPC's own is set.
"""

from __future__ import annotations

import dataclasses
import struct
from collections.abc import Mapping
from enum import IntEnum
from typing import Any

import safetensors
import safetensors.torch
from torch import Tensor

from leaktight.core.archive import pack, unpack
from leaktight.core.errors import LeaktightError
from leaktight.core.message import Tensors
from leaktight.wire.fault import PeerFault

HEADER = struct.Struct(">Bq")
"""Sort and step."""
CONTROL_LIMIT = 1 << 20
"""How many bytes the payload of any but a bulky frame may have."""
NAMES_LIMIT = 4096
"""How many bytes names and shapes of tensors may take: far more than a step needs, far less than a million names."""
_FAULTS = (safetensors.SafetensorError, ValueError, KeyError, TypeError, AttributeError, RuntimeError, OverflowError)


class Sort(IntEnum):
    """What a frame is."""

    HELLO = 1
    ACTIVATIONS = 2
    GRADIENT = 3
    TEST = 4
    DONE = 5
    FAULT = 6


BULKY = frozenset({Sort.ACTIVATIONS, Sort.GRADIENT, Sort.TEST})


@dataclasses.dataclass(frozen=True)
class Frame:
    """One frame.

    Args:
        sort: what it is.
        step: the step that it belongs to; -1 before the first.
        payload: a safetensors file, or nothing.
    """

    sort: Sort
    step: int
    payload: bytes = dataclasses.field(default=b"", repr=False)

    def to_bytes(self) -> bytes:
        r"""Return what goes over the wire.

        Example:
            >>> Frame(Sort.DONE, 7, b"...").to_bytes()
            b'\x05\x00\x00\x00\x00\x00\x00\x00\x07...'
        """
        return HEADER.pack(self.sort, self.step) + self.payload


def read_frame(content: bytes, sender: str, limit: int) -> Frame:
    """Return the frame in a gRPC message.

    Args:
        content: the message.
        sender: who sent it, for the error.
        limit: how many bytes the payload of a bulky frame may have; others have `CONTROL_LIMIT` at most, the last one
            nothing.

    Raises:
        PeerFault: it is no frame, or too large.

    Example:
        >>> read_frame(b"GET / HTTP/1.1", "feature-party", limit=100)
        Traceback (most recent call last):
        leaktight.wire.fault.PeerFault: A frame from feature-party must be of a known sort. \
Got 71 instead; is it leaktight?
    """
    if len(content) < HEADER.size:
        raise PeerFault(f"A frame from {sender} must have a header of {HEADER.size} bytes. Got {len(content)} instead.")
    number, step = HEADER.unpack_from(content)
    try:
        sort = Sort(number)
    except ValueError:
        raise PeerFault(
            f"A frame from {sender} must be of a known sort. Got {number} instead; is it leaktight?"
        ) from None
    most = limit if sort in BULKY else 0 if sort is Sort.DONE else min(limit, CONTROL_LIMIT)
    size = len(content) - HEADER.size
    if size > most:
        raise PeerFault(
            f"A frame of sort {sort.name} from {sender} must have at most {most} bytes. Got {size} instead."
        )
    if step < -1:
        raise PeerFault(f"The step of a frame from {sender} must be at least -1. Got {step} instead.")
    return Frame(sort, step, content[HEADER.size :])


def pack_tensors(tensors: Tensors) -> bytes:
    """Return named tensors as a payload.

    Example:
        >>> import torch
        >>> unpack_tensors(pack_tensors({"gradient": torch.ones(2)}), "label-party")
        {'gradient': tensor([1., 1.])}
    """
    return safetensors.torch.save({name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()})


def unpack_tensors(payload: bytes, sender: str) -> dict[str, Tensor]:
    """Return the tensors of a payload, by name; what they must be is checked by the party that they are for.

    Raises:
        PeerFault: it is no whole safetensors file, or one with more names than any step needs.
    """
    if int.from_bytes(payload[:8], "little") > NAMES_LIMIT:
        raise PeerFault(
            f"The payload from {sender} must have a header of at most {NAMES_LIMIT} bytes. Got a longer one."
        )
    try:
        tensors: dict[str, Tensor] = safetensors.torch.load(payload)
    except _FAULTS:
        raise PeerFault(f"The payload from {sender} must be a whole safetensors file. It is not.") from None
    return tensors


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
