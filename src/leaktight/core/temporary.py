"""Temporary folders for private files: removed after the block, or after the process, however it ended."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PREFIX = "leaktight-"
_LOCK = ".owner"


@contextmanager
def private_temporary() -> Iterator[Path]:
    """Return a folder for its owner alone that is removed after the block.

    What killed processes left behind is removed first. Whose process lives is told by a lock on a file in the folder,
    which the system releases when a process ends, even by SIGKILL.

    Example:
        >>> with private_temporary() as folder:
        ...     folder.is_dir(), oct(folder.stat().st_mode & 0o777)
        (True, '0o700')
        >>> folder.exists()
        False
    """
    sweep()
    folder, lock = _make_folder()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def sweep() -> None:
    """Remove our own temporary folders whose processes are gone."""
    for lock in Path(tempfile.gettempdir()).glob(f"{PREFIX}*/{_LOCK}"):
        # Another user's, or removed meanwhile.
        with suppress(OSError):
            descriptor = os.open(lock, os.O_RDWR | os.O_NOFOLLOW)
            try:
                owners = {os.fstat(descriptor).st_uid, lock.parent.lstat().st_uid}
                if owners == {os.getuid()} and _lock(descriptor):
                    shutil.rmtree(lock.parent, ignore_errors=True)
            finally:
                os.close(descriptor)


def _make_folder() -> tuple[Path, int]:
    while True:
        folder = Path(tempfile.mkdtemp(prefix=PREFIX))
        descriptor = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        if _lock(descriptor):
            return folder, descriptor
        # Somebody who sweeps was faster, and removes it.
        os.close(descriptor)


def _lock(descriptor: int) -> bool:
    """Take a lock, if nobody has it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
