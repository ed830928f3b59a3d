"""Tensor files from others: safetensors whose header is checked against the content before any allocation."""

from __future__ import annotations

import math
from typing import IO, Any

import torch
from torch import Tensor

from leaktight.core.document import parse_json
from leaktight.core.errors import LeaktightError

LARGEST_HEADER = 1 << 24
"""How many bytes the header may have."""
MOST_TENSORS = 50_000
"""How many tensors a file may hold; the largest language models have a few thousand."""
MOST_DIMENSIONS = 16
_LARGEST_SIZE = 1 << 48
_PREFIX = 8
_PIECE = 1 << 20
_METADATA = "__metadata__"
_TYPES = {
    "BOOL": torch.bool, "U8": torch.uint8, "I8": torch.int8, "U16": torch.uint16, "I16": torch.int16,
    "U32": torch.uint32, "I32": torch.int32, "U64": torch.uint64, "I64": torch.int64, "F16": torch.float16,
    "BF16": torch.bfloat16, "F32": torch.float32, "F64": torch.float64,
}  # fmt: skip
"""The types that are in messages and models here."""


class DamagedTensors(LeaktightError):
    """A tensor file is cut, or its header does not fit its content; the text says which, as the end of a sentence."""


def load_tensors(file: IO[bytes], size: int) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Return the tensors in a safetensors file by name, and the words that it holds beside them.

    Each tensor is read to memory of its own, so nothing is held twice.

    Args:
        file: at its beginning, unpacked.
        size: how many bytes it has.

    Raises:
        DamagedTensors: it is cut, is no safetensors, holds too many tensors, or its header does not fit its content.
    """
    length = int.from_bytes(file.read(_PREFIX), "little")
    if size < _PREFIX or length > size - _PREFIX or length > LARGEST_HEADER:
        raise DamagedTensors("is cut, or it is not safetensors")
    header = _header(file.read(length))
    words = header.pop(_METADATA, {})
    if not isinstance(words, dict) or not all(isinstance(word, str) for word in words.values()):
        raise DamagedTensors("has a header that cannot be read")
    places = sorted(((*_extent(entry), name) for name, entry in header.items()), key=lambda place: place[:2])
    _check_places(places, size - _PREFIX - length)
    tensors = {name: _tensor(file, end - begin, header[name]) for begin, end, name in places}
    return {name: tensors[name] for name in header}, words


def _header(text: bytes) -> dict[str, Any]:
    # Before it is parsed, which takes twenty times its size.
    if text.count(b'"data_offsets"') > MOST_TENSORS:
        raise DamagedTensors(f"holds more than {MOST_TENSORS} tensors")
    try:
        header = parse_json(text)
    except ValueError:
        raise DamagedTensors("has a header that cannot be read") from None
    if not isinstance(header, dict):
        raise DamagedTensors("has a header that cannot be read")
    if len(header) > MOST_TENSORS + 1:
        raise DamagedTensors(f"holds more than {MOST_TENSORS} tensors")
    return header


def _extent(entry: Any) -> tuple[int, int]:
    """Return where a tensor begins and ends, if its type, shape and place agree."""
    try:
        shape, (begin, end), kind = entry["shape"], entry["data_offsets"], _TYPES[entry["dtype"]]
        whole = [type(number) is int and 0 <= number <= _LARGEST_SIZE for number in (*shape, begin, end)]
    except (KeyError, TypeError, ValueError):
        raise DamagedTensors("has a header that cannot be read") from None
    if not all(whole) or len(shape) > MOST_DIMENSIONS or math.prod(shape) * kind.itemsize != end - begin:
        raise DamagedTensors("has a header in which a tensor's shape does not fit its place")
    return begin, end


def _check_places(places: list[tuple[int, int, str]], room: int) -> None:
    """Raise unless tensors follow one another without a gap and fill the file exactly."""
    at = 0
    for begin, end, _ in places:
        if begin != at:
            raise DamagedTensors("has tensors that overlap or leave a gap")
        at = end
    if at != room:
        raise DamagedTensors(f"must hold as many bytes as its header says, {at}, and has {room}")


def _tensor(file: IO[bytes], size: int, entry: dict[str, Any]) -> Tensor:
    kind, shape = _TYPES[entry["dtype"]], entry["shape"]
    if not size:
        return torch.empty(shape, dtype=kind)
    # Filled as it comes, so that no second copy of a large tensor is made.
    content = bytearray()
    while piece := file.read(min(_PIECE, size - len(content))):
        content += piece
    if len(content) != size:
        raise DamagedTensors("is cut")
    flat = torch.frombuffer(content, dtype=torch.uint8 if kind is torch.bool else kind)
    # A truth value of any other byte than 0 and 1 would be neither.
    return (flat != 0 if kind is torch.bool else flat).reshape(shape)
