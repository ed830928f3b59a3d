"""Earlier reports: a report that is written again does not take the place of another one without a word."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from leaktight.core.errors import InvalidValue
from leaktight.core.private import reason, write_private

Tell = Callable[[str], object]
"""Who is told what became of an earlier file."""


def write_beside(path: Path, content: bytes, force: bool = False, tell: Tell | None = None) -> Path:
    """Write a file for its owner alone, and keep an earlier one of that name that says something else.

    The new file has the name that was asked for, and the earlier one gets a number: `report.html` becomes
    `report-1.html`, then `report-2.html`, and so on.

    Args:
        path: the file to write.
        content: what to write.
        force: whether an earlier file is replaced.
        tell: is told the name of the earlier file, if one was kept.
    """
    try:
        kept = None if force else _keep(path, content)
    except OSError as error:
        raise InvalidValue(f"The earlier `{path}` cannot be kept: {reason(error)}. Choose another file.") from error
    if kept is not None and tell is not None:
        tell(f"The earlier {path.name} was kept as {kept.name}.")
    write_private(path, content)
    return path


def _keep(path: Path, content: bytes) -> Path | None:
    """Give a file that says something else than this another name, and return that; None if there is none."""
    if not path.is_file() or path.read_bytes() == content:
        return None
    number = 1
    while (kept := path.with_name(f"{path.stem}-{number}{path.suffix}")).exists():
        number += 1
    path.rename(kept)
    return kept
