"""The journal: every score that is finished, one line of JSON each, so that nothing is lost when a search is stopped."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from leaktight.core.document import parse_json
from leaktight.core.errors import LeaktightError
from leaktight.core.input_file import GIBIBYTE, read_input
from leaktight.core.private import private_file, private_folder, reason
from leaktight.search.job import Job

Answer = tuple[float, ...]
FORMAT = 1
LARGEST_JOURNAL = GIBIBYTE
"""How many bytes a journal may have: some millions of scores."""


class Journal:
    """Finished scores in a file that only grows; its first line says what they were made from.

    A journal of something else (other data, another network, another version) is begun anew. A line that was cut off in the middle,
    as it is after `kill -9`, and all that may follow on it, count as not there.

    Args:
        path: the file; it is made if it is not there.
        origin: the fingerprint of what scores are made from.

    Example:
        >>> import tempfile
        >>> job = Job("accuracy", 0, 8, (3, 1))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with Journal(Path(folder) / "journal.jsonl", "a") as journal:
        ...         journal.add(job, (-1.5,))
        ...     with Journal(Path(folder) / "journal.jsonl", "a") as journal:
        ...         journal.known[job]
        (-1.5,)
    """

    def __init__(self, path: Path, origin: str) -> None:
        private_folder(path.parent)
        private_file(path)
        first = {"format": FORMAT, "origin": origin}
        try:
            self.known, whole = _read(path, first)
            self._file = path.open("r+b")
            self._file.truncate(whole)
            self._file.seek(whole)
            if not whole:
                self._write(first)
        except OSError as error:
            raise _unwritable(path, error) from error

    def add(self, job: Job, answer: Answer) -> None:
        """Write a score down."""
        line = {"what": job.what, "start": job.start, "stop": job.stop, "acts": job.acts, "scores": answer}
        try:
            self._write(line)
        except OSError as error:
            raise _unwritable(Path(self._file.name), error) from error
        self.known[job] = answer

    def _write(self, line: Mapping[str, Any]) -> None:
        self._file.write(json.dumps(line, separators=(",", ":")).encode() + b"\n")
        # To the operating system, which outlives this process.
        self._file.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Close the file."""
        self._file.close()


def _read(path: Path, first: Mapping[str, Any]) -> tuple[dict[Job, Answer], int]:
    """Return the scores in a file and how many of its bytes are whole lines; none of them if it begins with something else."""
    found: dict[Job, Answer] = {}
    whole = 0
    for number, line in enumerate(read_input(path, LARGEST_JOURNAL).splitlines(keepends=True)):
        try:
            held = parse_json(line if line.endswith(b"\n") else b"")
            if number == 0 and held != first:
                return {}, 0
            if number:
                found[Job(held["what"], held["start"], held["stop"], tuple(held["acts"]))] = tuple(map(float, held["scores"]))
        except (ValueError, TypeError, KeyError):
            break
        whole += len(line)
    return found, whole


def _unwritable(path: Path, error: OSError) -> LeaktightError:
    return LeaktightError(f"The file `{path}` cannot be written: {reason(error)}. Free some space, or choose another folder.")
