"""Frames: what goes over the wire, a small fixed header and a payload whose size is checked before anything of it is read."""

from __future__ import annotations

import dataclasses
import struct
from enum import IntEnum

from leaktight.wire.fault import PeerFault

MAGIC = b"LKTW"
VERSION = 1
HEADER = struct.Struct(">4sHHqQ")
"""Magic, protocol version, sort, step, length of the payload; the first two have their places in every version."""
CONTROL_LIMIT = 1 << 20


class Sort(IntEnum):
    """What a frame is."""

    HELLO = 1
    ACTIVATIONS = 2
    GRADIENT = 3
    TEST = 4
    DONE = 5
    PING = 6
    PONG = 7
    FAULT = 8


EMPTY = frozenset({Sort.DONE, Sort.PING, Sort.PONG})
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
        """Return what goes over the wire.

        Example:
            >>> Frame(Sort.PING, 7).to_bytes().hex(" ", 4)
            '4c4b5457 00010006 00000000 00000007 00000000 00000000'
        """
        return HEADER.pack(MAGIC, VERSION, self.sort, self.step, len(self.payload)) + self.payload


def read_frame(content: bytes, sender: str, limit: int) -> Frame:
    """Return the frame that came in.

    Args:
        content: what came over the wire.
        sender: who sent it, for the error.
        limit: how many bytes the payload of a bulky frame may have; others are bounded by `CONTROL_LIMIT`.

    Raises:
        PeerFault: it is no frame, one of another version, or too large.

    Example:
        >>> read_frame(b"GET / HTTP/1.1 and so on", "feature-party", limit=100)
        Traceback (most recent call last):
        leaktight.wire.fault.PeerFault: A frame from feature-party must begin with `LKTW` and have a whole header. It does not; is it leaktight?
    """
    if len(content) < HEADER.size or content[: len(MAGIC)] != MAGIC:
        raise PeerFault(
            f"A frame from {sender} must begin with `{MAGIC.decode()}` and have a whole header. It does not; is it leaktight?"
        )
    _, version, number, step, length = HEADER.unpack_from(content)
    if version != VERSION:
        raise PeerFault(
            f"{sender} must speak version {VERSION} of the protocol. Got version {version} instead; install the same leaktight on both sides."
        )
    try:
        sort = Sort(number)
    except ValueError:
        raise PeerFault(f"A frame from {sender} must be of a known sort. Got {number} instead.") from None
    most = 0 if sort in EMPTY else limit if sort in BULKY else min(limit, CONTROL_LIMIT)
    if length > most:
        raise PeerFault(f"A frame of sort {sort.name} from {sender} must have at most {most} bytes. Got {length} instead.")
    if length != len(content) - HEADER.size:
        raise PeerFault(
            f"A frame from {sender} must have the {length} bytes that it announces. Got {len(content) - HEADER.size} instead."
        )
    if step < -1:
        raise PeerFault(f"The step of a frame from {sender} must be at least -1. Got {step} instead.")
    return Frame(sort, step, content[HEADER.size :])
