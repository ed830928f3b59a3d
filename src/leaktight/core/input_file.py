"""Input files: what people or peers supply is opened here alone, and never takes more memory than its stated bound.

Only regular files are opened: a named pipe or a device could block for ever or never end. Links are followed. A file
with a size beyond its bound is not read. Neither holes nor compression make a small file large: what it expands to is
bounded by what was really delivered.
"""

from __future__ import annotations

import errno
import gzip
import hashlib
import io
import os
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from leaktight.core.errors import InvalidValue

KIBIBYTE, MEBIBYTE, GIBIBYTE = 1 << 10, 1 << 20, 1 << 30
EXPANSION_FREE = 64 * MEBIBYTE
"""What a compressed or sparse file may always expand to."""
EXPANSION_LIMIT = 100
"""Beyond that, how many times its real size it may expand to: tables reach 20, gzip at most 1,032."""
LARGEST_SETTINGS = MEBIBYTE
"""How many bytes a file of settings may have: plans, party files, policies, manifests, certificates and keys."""
LARGEST_STATE = 16 * GIBIBYTE
"""How many bytes a model, a checkpoint or another archive of tensors may have."""
_PIECE = MEBIBYTE
_MOST_EXTENTS = 10_000
_KINDS = {
    stat.S_IFIFO: "a named pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
}


@contextmanager
def open_input(path: Path, largest: int) -> Iterator[BinaryIO]:
    """Open a regular file of a bounded size to read its bytes.

    Args:
        path: the file; links are followed.
        largest: how many bytes it may have.

    Raises:
        InvalidValue: it is no regular file, is too large, or is nearly all holes.
        OSError: it cannot be opened, as any other file; a folder is an `IsADirectoryError`.

    Example:
        >>> with open_input(Path("/dev/zero"), largest=100) as file:
        ...     file.read()
        Traceback (most recent call last):
        leaktight.core.errors.InvalidValue: The file `/dev/zero` must be a regular file. Got a device instead; copy what it holds to a file.
    """  # noqa: E501
    # Some devices act when they are opened, so it is looked at first. It may have become another file by the time it is
    # open.
    _check_kind(path, path.stat())
    # A named pipe is then open at once, in place of waiting for a writer; to a regular file it makes no difference.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
    with os.fdopen(os.open(path, flags), "rb") as file:
        state = os.fstat(file.fileno())
        _check_kind(path, state)
        if state.st_size > largest:
            raise too_large(path, largest, state.st_size)
        if state.st_size > expansion_bound(_data_bytes(file.fileno(), state.st_size), largest):
            raise InvalidValue(
                f"The file `{path}` must hold what its size says. Got {in_words(state.st_size)}, nearly all of it "
                "holes; copy it with `cp --sparse=never` if it is right."
            )
        yield file


def read_input(path: Path, largest: int) -> bytes:
    """Return what a regular file of a bounded size holds.

    Args:
        path: the file; links are followed.
        largest: how many bytes it may have.

    Raises:
        InvalidValue: it is no regular file, is too large, or is nearly all holes.
        OSError: it cannot be opened or read.
    """
    with open_input(path, largest) as file:
        content = file.read(os.fstat(file.fileno()).st_size + 1)
        # A file may grow meanwhile, and the system's own tell no size.
        while more := file.read(_PIECE):
            content += more
            if len(content) > largest:
                raise too_large(path, largest, len(content))
        return content


def digest_input(path: Path, largest: int) -> bytes:
    """Return the SHA-256 of what a regular file of a bounded size holds, a piece at a time.

    Args:
        path: the file; links are followed.
        largest: how many bytes it may have.

    Raises:
        InvalidValue: as for `open_input`, or it cannot be read.
    """
    try:
        with open_input(path, largest) as file:
            digest = hashlib.sha256()
            while piece := file.read(_PIECE):
                digest.update(piece)
            return digest.digest()
    except OSError as error:
        raise InvalidValue(f"The file `{path}` cannot be read: {error.strerror or error}.") from error


@contextmanager
def open_unpacked(path: Path, largest: int) -> Iterator[BinaryIO]:
    """Open a file as `open_input` does; one whose name ends in `.gz` is unpacked to memory, as far as the bounds allow.

    Args:
        path: the file.
        largest: how many bytes it may have, packed and unpacked.

    Raises:
        InvalidValue: also if it is a damaged gzip file, or unpacks to more than `expansion_bound` of its size.
        OSError: it cannot be opened or read.
    """
    with open_input(path, largest) as file:
        if path.suffix.lower() != ".gz":
            yield file
            return
        unpacked = io.BytesIO()
        try:
            with gzip.GzipFile(fileobj=file) as packed:
                while piece := packed.read(_PIECE):
                    unpacked.write(piece)
                    # By what was read of it so far, so that a small file ends before it has grown large.
                    bound = expansion_bound(file.tell(), largest)
                    if unpacked.tell() > bound:
                        raise InvalidValue(
                            f"The file `{path}` must unpack to at most {in_words(largest)}, and to {EXPANSION_LIMIT} "
                            "times its size. It unpacks to more; unpack it yourself if it is right, or take a part of "
                            "it."
                        )
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise InvalidValue(
                f"The file `{path}` must be a whole gzip file. It is damaged ({error}); fetch it again."
            ) from None
    unpacked.seek(0)
    yield unpacked


def expansion_bound(delivered: int, largest: int) -> int:
    """Return how many bytes something may expand to that was delivered as so many.

    Args:
        delivered: how many bytes it has packed, or without holes.
        largest: how many bytes it may have whatever it is.

    Example:
        >>> expansion_bound(1000, GIBIBYTE) == EXPANSION_FREE, expansion_bound(MEBIBYTE, GIBIBYTE) // MEBIBYTE
        (True, 100)
    """
    return min(largest, max(EXPANSION_FREE, EXPANSION_LIMIT * delivered))


def too_large(path: Path, largest: int, size: int) -> InvalidValue:
    """Return the error for a file beyond its bound."""
    most, got = in_words(largest), in_words(size)
    return InvalidValue(
        f"The file `{path}` must have at most {most}. Got {f'{size} bytes' if got == most else got} instead; name "
        "another file, or a part of it."
    )


def in_words(size: int) -> str:
    """Return a number of bytes as a person says it.

    Example:
        >>> in_words(10), in_words(3 << 29), in_words(200 * 10**9)
        ('10 bytes', '1.5 GiB', '186 GiB')
    """
    for unit, name in ((1 << 40, "TiB"), (GIBIBYTE, "GiB"), (MEBIBYTE, "MiB"), (KIBIBYTE, "KiB")):
        if size >= unit:
            return f"{size / unit:.3g} {name}"
    return f"{size} bytes"


def _check_kind(path: Path, state: os.stat_result) -> None:
    kind = stat.S_IFMT(state.st_mode)
    if kind == stat.S_IFDIR:
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if kind != stat.S_IFREG:
        raise InvalidValue(
            f"The file `{path}` must be a regular file. Got {_KINDS.get(kind, 'something else')} instead; copy what "
            "it holds to a file."
        )


def _data_bytes(descriptor: int, size: int) -> int:
    """Return how many bytes of a file are not holes, or enough of them to show that it is no sparse file."""
    if size <= EXPANSION_FREE or not hasattr(os, "SEEK_DATA"):
        return size
    total = end = 0
    try:
        for _ in range(_MOST_EXTENTS):
            begin = os.lseek(descriptor, end, os.SEEK_DATA)
            end = os.lseek(descriptor, begin, os.SEEK_HOLE)
            total += end - begin
            if EXPANSION_LIMIT * total >= size:
                return total
        return size
    except OSError as error:
        # There is no more data. Any other answer means that the file system does not know about holes.
        return total if error.errno == errno.ENXIO else size
    finally:
        os.lseek(descriptor, 0, os.SEEK_SET)
