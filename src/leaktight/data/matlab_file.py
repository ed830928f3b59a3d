"""MATLAB files: numeric arrays of version 5, read without running or building anything, and within bounds."""

from __future__ import annotations

import dataclasses
import math
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from leaktight.core.errors import InvalidValue, list_known
from leaktight.core.input_file import expansion_bound, in_words
from leaktight.data.files import LARGEST_DATA, open_data

MOST_ARRAYS = 1_000
"""How many arrays a file may hold."""
_HEADER, _HEAD = 128, 4096
"""How long a file's header is, and what is unpacked of an array to see its name."""
_MATRIX, _COMPRESSED = 14, 15
_NUMERIC = range(6, 16)
_COMPLEX = 0x08
_KINDS = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
_ENDS = {b"IM": "<", b"MI": ">"}
_MOST_DIMENSIONS = 16


def read_matlab(path: Path, names: tuple[str, ...]) -> dict[str, NDArray[Any]]:
    """Return arrays of real numbers from a MATLAB file, by name; anything else in it is passed over.

    Args:
        path: the file, written by MATLAB 5 to 7.2 or by `scipy.io.savemat`.
        names: which arrays; each must be there.
    """
    found: dict[str, NDArray[Any]] = {}
    others: list[str] = []
    with open_data(path) as file:
        try:
            end = _byte_order(file)
            for count, content in enumerate(_elements(file, end, path), start=1):
                if count > MOST_ARRAYS:
                    raise ValueError(f"it holds more than {MOST_ARRAYS:,} arrays")
                name = _Matrix.of(content.head(), end).name
                if name in names and name not in found:
                    found[name] = _Matrix.of(content.whole(), end).numbers()
                else:
                    others.append(name)
        except (ValueError, struct.error, zlib.error, UnicodeDecodeError, IndexError) as error:
            raise InvalidValue(
                f"The file `{path}` must be a whole MATLAB file of version 5. It is not ({error}); fetch it again, or "
                "save it with `-v7`."
            ) from None
    missing = [name for name in names if name not in found]
    if missing:
        raise InvalidValue(
            f"The file `{path}` must have an array `{missing[0]}`. {list_known([*found, *others])} Name another file."
        )
    return found


@dataclasses.dataclass(frozen=True)
class _Content:
    """One array as it lies in the file, packed or not."""

    packed: bytes
    is_compressed: bool
    path: Path

    def head(self) -> bytes:
        """Return its beginning, where its name stands."""
        return zlib.decompressobj().decompress(self.packed, _HEAD) if self.is_compressed else self.packed[:_HEAD]

    def whole(self) -> bytes:
        """Return all of it, or refuse to unpack it beyond its bound."""
        if not self.is_compressed:
            return self.packed
        bound = expansion_bound(len(self.packed), LARGEST_DATA)
        unpacking = zlib.decompressobj()
        content = unpacking.decompress(self.packed, bound)
        if unpacking.unconsumed_tail:
            raise InvalidValue(
                f"An array of `{self.path}` must unpack to at most {in_words(bound)}. It unpacks to more; save it "
                "without compression if it is right."
            )
        return content


@dataclasses.dataclass(frozen=True)
class _Matrix:
    """An array's parts: class and flags, dimensions, name, and where its numbers begin."""

    content: bytes
    end: str
    kind: int
    flags: int
    shape: tuple[int, ...]
    name: str
    start: int

    @classmethod
    def of(cls, content: bytes, end: str) -> _Matrix:
        """Return the parts of an array; its numbers need not be there yet."""
        outer, _ = struct.unpack_from(f"{end}II", content)
        if outer != _MATRIX:
            raise ValueError("a compressed part is no array")
        _, flags, at = _part(content, 8, end)
        kind, dimensions, at = _part(content, at, end)
        if kind != 5 or len(dimensions) // 4 > _MOST_DIMENSIONS:
            raise ValueError("the dimensions of an array are not whole numbers")
        _, name, at = _part(content, at, end)
        word = struct.unpack_from(f"{end}I", flags)[0]
        shape = struct.unpack(f"{end}{len(dimensions) // 4}i", dimensions)
        return cls(content, end, word & 0xFF, (word >> 8) & 0xFF, shape, name.decode("ascii"), at)

    def numbers(self) -> NDArray[Any]:
        """Return the numbers, first dimension fastest, as MATLAB has them."""
        if self.kind not in _NUMERIC or self.flags & _COMPLEX:
            raise ValueError(f"`{self.name}` does not hold real numbers")
        kind, content, _ = _part(self.content, self.start, self.end)
        if kind not in _KINDS:
            raise ValueError(f"`{self.name}` holds numbers of an unknown kind")
        numbers = np.frombuffer(content, dtype=np.dtype(self.end + _KINDS[kind]))
        if min(self.shape, default=0) < 0 or len(numbers) != math.prod(self.shape):
            raise ValueError(f"`{self.name}` has other than {math.prod(self.shape)} numbers")
        return numbers.reshape(self.shape, order="F")


def _byte_order(file: BinaryIO) -> str:
    header = file.read(_HEADER)
    end = _ENDS.get(header[126:128])
    if len(header) < _HEADER or end is None:
        raise ValueError("its header is another")
    version = struct.unpack(f"{end}H", header[124:126])[0]
    if version != 0x0100:
        raise ValueError("it is of another version, such as 7.3")
    return end


def _elements(file: BinaryIO, end: str, path: Path) -> Iterator[_Content]:
    """Yield the arrays one after the other; what is promised is never taken before it is there."""
    while tag := file.read(8):
        if len(tag) < 8:
            raise ValueError("it is shorter than it says")
        kind, size = struct.unpack(f"{end}II", tag)
        if kind not in (_MATRIX, _COMPRESSED):
            raise ValueError("it holds something that is no array")
        content = _take(file, size)
        yield _Content(content if kind == _COMPRESSED else tag + content, kind == _COMPRESSED, path)


def _take(file: BinaryIO, size: int, piece: int = 1 << 20) -> bytes:
    """Read so many bytes, a piece at a time: memory is used as they come, not as they are promised."""
    content = bytearray()
    while len(content) < size:
        part = file.read(min(piece, size - len(content)))
        if not part:
            raise ValueError("it is shorter than it says")
        content += part
    return bytes(content)


def _part(content: bytes, at: int, end: str) -> tuple[int, bytes, int]:
    """Return kind and bytes of a part of an array, and where the next one begins."""
    word = struct.unpack_from(f"{end}I", content, at)[0]
    if word >> 16:
        size = word >> 16
        if size > 4:
            raise ValueError("a small part is too long")
        return word & 0xFFFF, content[at + 4 : at + 4 + size], at + 8
    size = struct.unpack_from(f"{end}I", content, at + 4)[0]
    start = at + 8
    return word, content[start : start + size], start + -(-size // 8) * 8
