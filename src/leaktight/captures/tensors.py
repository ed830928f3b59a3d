"""Tensor files that others wrote: safetensors whose header is checked against the file before anything is allocated."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
from torch import Tensor

from leaktight.core.errors import InvalidValue
from leaktight.core.private import reason

LARGEST_HEADER = 1 << 24
LARGEST_FILE = 1 << 32
"""How many bytes a header and a whole file may have."""
MOST_DIMENSIONS = 16
_PREFIX = 8
_METADATA = "__metadata__"
_SIZES = {
    "BOOL": 1, "U8": 1, "I8": 1, "U16": 2, "I16": 2, "F16": 2, "BF16": 2,
    "U32": 4, "I32": 4, "F32": 4, "U64": 8, "I64": 8, "F64": 8,
}  # fmt: skip
"""How many bytes one entry of each type has; other types are in no message."""


def read_tensors(path: Path) -> dict[str, Tensor]:
    """Read a tensor file, in the order in which it was written if it tells.

    Raises:
        InvalidValue: it cannot be read, is cut, too large, or its header does not fit its content.
    """
    try:
        size = path.stat().st_size
        if size > LARGEST_FILE:
            raise InvalidValue(f"The tensor file `{path.name}` must have at most {LARGEST_FILE} bytes. Got {size} instead.")
        with path.open("rb") as file:
            header = _header(file.read(_PREFIX), size, path.name)
            names = _checked(file.read(header), size - _PREFIX - header, path.name)
        found = safetensors.torch.load_file(path)
        return {name: found[name] for name in names}
    except OSError as error:
        raise InvalidValue(f"The tensor file `{path}` cannot be read: {reason(error)}.") from error
    except (safetensors.SafetensorError, KeyError, ValueError, RuntimeError) as error:
        raise InvalidValue(f"The tensor file `{path.name}` is damaged. Record the messages again.") from error


def _header(prefix: bytes, size: int, name: str) -> int:
    """Return how long the header is, if the file can hold it."""
    length = int.from_bytes(prefix, "little")
    if len(prefix) < _PREFIX or length > size - _PREFIX or length > LARGEST_HEADER:
        raise InvalidValue(f"The tensor file `{name}` is cut, or it is not safetensors. Record the messages again.")
    return length


def _checked(text: bytes, room: int, name: str) -> list[str]:
    """Return the names in a header whose tensors fill the file exactly."""
    try:
        header: Any = json.loads(text)
        entries = {key: value for key, value in header.items() if key != _METADATA}
        ends = [_extent(entry) for entry in entries.values()]
        told = json.loads(header.get(_METADATA, {}).get("order", "[]"))
    except (ValueError, RecursionError, AttributeError, TypeError, KeyError, OverflowError) as error:
        raise InvalidValue(f"The header of the tensor file `{name}` cannot be read. Record the messages again.") from error
    if max(ends, default=0) != room:
        raise InvalidValue(
            f"The tensor file `{name}` must hold as many bytes as its header says, {max(ends, default=0)}. Got {room} instead; "
            "record the messages again."
        )
    known = isinstance(told, list) and all(isinstance(one, str) for one in told) and sorted(told) == sorted(entries)
    return told if known else list(entries)


def _extent(entry: dict[str, Any]) -> int:
    """Return where a tensor ends, if its type, shape and place agree."""
    shape, (begin, end) = entry["shape"], entry["data_offsets"]
    plain = [type(number) is int and number >= 0 for number in (*shape, begin, end)]
    if not all(plain) or len(shape) > MOST_DIMENSIONS or math.prod(shape) * _SIZES[entry["dtype"]] != end - begin:
        raise ValueError("a tensor's shape does not fit its place")
    # A size beyond what a tensor can have may hide behind a zero.
    if max(shape, default=0) > LARGEST_FILE:
        raise ValueError("a tensor is too large")
    return int(end)


def pack_tensors(tensors: dict[str, Tensor]) -> bytes:
    """Return tensors as safetensors that remember their order."""
    kept = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}
    return safetensors.torch.save(kept, metadata={"order": json.dumps(list(kept))})
