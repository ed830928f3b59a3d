"""Files that hold what only their owner may see: readable by nobody else, and never half written."""

from __future__ import annotations

import fcntl
import os
import stat
import tempfile
from pathlib import Path
from typing import BinaryIO

from leaktight.core.errors import InvalidValue, LeaktightError

OWNER_ONLY = 0o600


def private_folder(path: Path) -> Path:
    """Return a folder; it and its parents are created for their owner alone if they do not exist."""
    try:
        # The mode of `mkdir` is for the last folder only, so each is made by itself.
        for place in [*reversed([above for above in path.parents if not above.exists()]), path]:
            place.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise InvalidValue(f"The folder `{path}` cannot be made: {reason(error)}. Choose another one.") from error
    return path


def private_file(path: Path) -> None:
    """Make sure that a file exists and that only its owner can read or write it, whatever the umask says."""
    try:
        # A named pipe would wait for a reader. What is no file of ours keeps its mode, also behind a link.
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NONBLOCK", 0), OWNER_ONLY)
        regular = stat.S_ISREG(os.fstat(descriptor).st_mode)
        os.close(descriptor)
        if regular:
            path.chmod(OWNER_ONLY)
    except OSError as error:
        raise InvalidValue(f"The file `{path}` cannot be written: {reason(error)}. Choose another folder.") from error
    if not regular:
        raise InvalidValue(f"The file `{path}` must be a regular file. It is something else; choose another folder.")


def lock_file(path: Path, wait: bool = False) -> BinaryIO:
    """Hold a lock until it is closed or this process ends, however it ends.

    Args:
        path: the file to lock; made for its owner alone.
        wait: whether to wait for who holds it.

    Raises:
        InvalidValue: somebody else holds it.
    """
    private_file(path)
    file = path.open("rb+")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError as error:
        file.close()
        raise InvalidValue(f"Another process uses `{path}`. Wait until it has ended, or name another file.") from error
    return file


def write_private(path: Path, content: bytes) -> None:
    """Write a file for its owner alone: either all of it is there afterwards, or nothing has changed."""
    private_folder(path.parent)
    temporary = None
    try:
        # mkstemp gives mode 0600 by itself.
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
        temporary = None
    except OSError as error:
        raise LeaktightError(
            f"The file `{path}` cannot be written: {reason(error)}. Free some space, or choose another folder."
        ) from error
    finally:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)


def check_writable(path: Path) -> None:
    """Raise the error for a file that could not be written; its folder is made if it was not there.

    Raises:
        InvalidValue: the path is a folder, or nothing can be written beside it.
    """
    if path.is_dir():
        raise InvalidValue(f"The file `{path}` cannot be written: it is a folder. Name a file in it.")
    private_folder(path.parent)
    try:
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        raise InvalidValue(f"The file `{path}` cannot be written: {reason(error)}. Choose another folder.") from error


def reason(error: OSError) -> str:
    """Return what the operating system says, as the middle of a sentence."""
    text = error.strerror or str(error)
    return text[:1].lower() + text[1:]
