"""Array archives: NumPy's `.npz`, read member by member without pickles and within bounds."""

from __future__ import annotations

import lzma
import math
import os
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from leaktight.core.errors import SHOWN, InvalidValue, list_known
from leaktight.core.input_file import MEBIBYTE, expansion_bound, in_words
from leaktight.data.files import LARGEST_DATA, open_data

LARGEST_DIRECTORY = MEBIBYTE
"""How many bytes an archive's list of members may have: some ten thousand names."""
_ENDING = ".npy"
_HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
_PIECE = LARGEST_DIRECTORY // 2
_FAULTS = (
    zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, ValueError, NotImplementedError, RuntimeError,
    SyntaxError,
)  # fmt: skip
"""What NumPy and Python's zip files raise for content that is not as it must be; a password is a `RuntimeError`."""


class ArrayArchive:
    """An open archive: the names of its arrays, and each array when it is asked for.

    Args:
        path: where it lies, for errors.
        packed: the open archive.
        size: how many bytes it has.
    """

    def __init__(self, path: Path, packed: zipfile.ZipFile, size: int) -> None:
        self.path, self._packed, self._size = path, packed, size
        names = [info.filename for info in packed.infolist()]
        if len(set(names)) != len(names):
            raise InvalidValue(
                f"The file `{path}` must have different names for its members. Got one twice; make it again."
            )
        self.names = tuple(name.removesuffix(_ENDING) for name in names)

    def array(self, name: str, advice: str) -> NDArray[Any]:
        """Return one member, or say what is wrong with it.

        Args:
            name: which one.
            advice: what to do if there is no such member.
        """
        if name not in self.names:
            raise InvalidValue(f"The file `{self.path}` must have a member `{name}`. {list_known(self.names)} {advice}")
        try:
            info = self._packed.NameToInfo.get(f"{name}{_ENDING}") or self._packed.getinfo(name)
            with self._packed.open(info) as file:
                return self._read(file, info, name)
        except _FAULTS as error:
            raise archive_error(self.path, error) from None

    def _read(self, file: Any, info: zipfile.ZipInfo, name: str) -> NDArray[Any]:
        shape, fortran, kind = _read_header(file)
        if kind.hasobject:
            raise ValueError(f"`{name}` holds Python objects")
        size = math.prod(shape) * kind.itemsize
        bound = expansion_bound(min(info.compress_size, self._size), LARGEST_DATA)
        if size > bound:
            raise InvalidValue(
                f"The member `{name}` of `{self.path}` must unpack to at most {in_words(bound)}. Got "
                f"{in_words(size)}; save it without compression if it is right, or take a part of it."
            )
        if size > info.file_size:
            raise ValueError(f"`{name}` is shorter than its header says")
        flat = _fill(file, size)
        array: NDArray[Any] = np.ndarray(shape, dtype=kind, buffer=flat, order="F" if fortran else "C")
        return array


@contextmanager
def open_archive(path: Path) -> Iterator[ArrayArchive]:
    """Open an archive without ever unpickling; whatever is wrong with it becomes one sentence."""
    with open_data(path) as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(0)
        if file.read(len(npy.MAGIC_PREFIX)) == npy.MAGIC_PREFIX:
            raise InvalidValue(
                f"The file `{path}` must be an archive made by `numpy.savez`. Got a single array instead."
            )
        try:
            packed = zipfile.ZipFile(_BoundedFile(file))
        except _FAULTS as error:
            raise archive_error(path, error) from None
        with packed:
            yield ArrayArchive(path, packed, size)


def archive_error(path: Path, error: Exception) -> InvalidValue:
    """Return the error for an archive that cannot be unpacked."""
    why = (str(error).splitlines() or [""])[0][:SHOWN].rstrip(".")
    return InvalidValue(
        f"The file `{path}` must be a whole NumPy archive without pickles. It is not ({why}); make or fetch it again."
    )


class _BoundedFile:
    """A file that gives out at most `LARGEST_DIRECTORY` bytes at once.

    An archive's list of members is read in one piece, so this bounds it.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.seek, self.tell, self.close, self.seekable = file.seek, file.tell, file.close, file.seekable

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes."""
        if size > LARGEST_DIRECTORY:
            raise ValueError(f"its list of members is larger than {in_words(LARGEST_DIRECTORY)}")
        return self._file.read(size)


def _read_header(file: Any) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    version = npy.read_magic(file)
    if version not in _HEADERS:
        raise ValueError(f"arrays of format {version[0]}.{version[1]} hold more than numbers")
    return _HEADERS[version](file)


def _fill(file: Any, size: int) -> NDArray[np.uint8]:
    """Read so many bytes and no more; memory is used as they come, not as they are promised."""
    flat: NDArray[np.uint8] = np.empty(size, dtype=np.uint8)
    at = 0
    while at < size:
        piece = file.read(min(_PIECE, size - at))
        if not piece:
            raise ValueError("it is shorter than its header says")
        flat[at : at + len(piece)] = np.frombuffer(piece, dtype=np.uint8)
        at += len(piece)
    if file.read(1):
        raise ValueError("it is longer than its header says")
    return flat
