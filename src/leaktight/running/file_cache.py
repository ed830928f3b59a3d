"""File caches: where a worker finds files and leaves those it makes.

A cache is a folder, or the memory of a process that owns no disk here.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Protocol

from leaktight.core.input_file import LARGEST_STATE, read_input
from leaktight.core.private import write_private


class FileCache(Protocol):
    """Files by name. They hold private heads and keys, so nobody but their owner may read them."""

    def read(self, name: str) -> bytes | None:
        """Return a file, or None if it is not there."""
        ...

    def write(self, name: str, content: bytes) -> None:
        """Write a file, whole or not at all."""
        ...

    def names(self) -> set[str]:
        """Return what is there."""
        ...

    def drop(self, name: str) -> None:
        """Remove a file, if it is there."""
        ...


@dataclasses.dataclass(frozen=True)
class Folder:
    """Files on disk, that only their owner can read."""

    path: Path

    def read(self, name: str) -> bytes | None:
        """Return a file; what keeps it from being read is an `OSError`."""
        path = self.path / name
        return read_input(path, LARGEST_STATE) if path.is_file() else None

    def write(self, name: str, content: bytes) -> None:
        """Write a file, whole or not at all."""
        write_private(self.path / name, content)

    def names(self) -> set[str]:
        """Return the names of all files."""
        return {path.name for path in self.path.iterdir() if path.is_file()} if self.path.is_dir() else set()

    def drop(self, name: str) -> None:
        """Remove a file, if it is there."""
        (self.path / name).unlink(missing_ok=True)

    def __str__(self) -> str:
        return str(self.path)


@dataclasses.dataclass(frozen=True)
class MemoryCache:
    """Files in memory: nothing private stays on a machine that only lends its processor.

    Example:
        >>> cache = MemoryCache()
        >>> cache.write("model", b"abc")
        >>> cache.read("model"), cache.read("other"), cache.names()
        (b'abc', None, {'model'})
    """

    files: dict[str, bytes] = dataclasses.field(default_factory=dict, repr=False)

    def read(self, name: str) -> bytes | None:
        """Return a file, or None."""
        return self.files.get(name)

    def write(self, name: str, content: bytes) -> None:
        """Keep a file."""
        self.files[name] = content

    def names(self) -> set[str]:
        """Return the names of all files."""
        return set(self.files)

    def drop(self, name: str) -> None:
        """Forget a file."""
        self.files.pop(name, None)

    def __str__(self) -> str:
        return "memory"
