"""The journal: every finished score as one line of JSON, so that nothing is lost when a search is stopped."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from leaktight.core.digest import digest
from leaktight.core.display import count
from leaktight.core.document import parse_json
from leaktight.core.errors import LeaktightError
from leaktight.core.input_file import GIBIBYTE, read_input
from leaktight.core.private import private_file, private_folder, reason, write_private
from leaktight.running.fingerprint import Fingerprint, explain
from leaktight.search.score_task import ImageScores, ScoreTask

FORMAT = 2
LARGEST_JOURNAL = GIBIBYTE
"""How many bytes a journal may have: some millions of scores."""
_log = logging.getLogger(__name__)


class Journal:
    """Finished scores in a file that only grows; its first line says what they were made from.

    A journal of other settings is begun anew, and so is one of other data, code or versions, which is said. Each line
    has a checksum, in which what it was made from counts too. A line that is damaged is left out and counted aloud; one
    that was cut off at the end, as it is after `kill -9`, counts as not there.

    Args:
        path: the file; it is made if it is not there.
        settings: the key of the settings that decide scores.
        fingerprint: what else scores are made from.

    Example:
        >>> import tempfile
        >>> task = ScoreTask("accuracy", 0, 8, (3, 1))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with Journal(Path(folder) / "journal.jsonl", "a", Fingerprint()) as journal:
        ...         journal.add(task, (-1.5,))
        ...     with Journal(Path(folder) / "journal.jsonl", "a", Fingerprint()) as journal:
        ...         journal.known[task]
        (-1.5,)
    """

    def __init__(self, path: Path, settings: str, fingerprint: Fingerprint) -> None:
        private_folder(path.parent)
        private_file(path)
        self._seal = f"{settings}-{fingerprint.digest}"
        first = _line({"format": FORMAT, "settings": settings, "parts": dict(fingerprint.parts)}, "")
        try:
            lines = read_input(path, LARGEST_JOURNAL).splitlines(keepends=True)
            scores = [(line, score) for line in lines[1:] if (score := _score(line, self._seal))]
            self.known = dict(score for _, score in scores)
            self._tell(path, lines, first, fingerprint)
            whole = first + b"".join(line for line, _ in scores)
            if whole != b"".join(lines):
                write_private(path, whole)
            self._file = path.open("ab")
        except OSError as error:
            raise _unwritable(path, error) from error

    def _tell(self, path: Path, lines: list[bytes], first: bytes, fingerprint: Fingerprint) -> None:
        """Say what is computed again, and why."""
        before = _parse_line(lines[0], "") if lines else None
        if before is not None and lines[0] != first:
            if _parse_line(first, "") == {**before, "parts": dict(fingerprint.parts)}:
                parts = Fingerprint({str(name): str(text) for name, text in dict(before["parts"]).items()})
                number = len(lines) - 1
                _log.warning(explain(fingerprint.changes(parts), count(number, "score"), number))
            return
        ended = [line for line in lines if line.endswith(b"\n")]
        damaged = len(ended) - len(self.known) - (before is not None)
        if damaged:
            verb = "is" if damaged == 1 else "are"
            _log.warning(
                "The journal `%s` is damaged in %s, which %s computed again.", path, count(damaged, "line"), verb
            )

    def add(self, task: ScoreTask, scores: ImageScores) -> None:
        """Write the scores of a task down."""
        line = {"what": task.what, "start": task.start, "stop": task.stop, "acts": task.acts, "scores": scores}
        try:
            self._file.write(_line(line, self._seal))
            # To the operating system, which outlives this process.
            self._file.flush()
        except OSError as error:
            raise _unwritable(Path(self._file.name), error) from error
        self.known[task] = scores

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the file."""
        self._file.close()


def _line(entry: Mapping[str, Any], seal: str) -> bytes:
    text = json.dumps(entry, separators=(",", ":"))
    return json.dumps({**entry, "checksum": digest(seal, text)[:16]}, separators=(",", ":")).encode() + b"\n"


def _parse_line(line: bytes, seal: str) -> dict[str, Any] | None:
    """Return what a line holds; None if it is cut off, damaged or made from something else."""
    try:
        entry: dict[str, Any] = parse_json(line)
        del entry["checksum"]
    except (ValueError, KeyError, AttributeError, TypeError):
        return None
    return entry if line == _line(entry, seal) else None


def _score(line: bytes, seal: str) -> tuple[ScoreTask, ImageScores] | None:
    entry = _parse_line(line, seal)
    if entry is None:
        return None
    task = ScoreTask(entry["what"], entry["start"], entry["stop"], tuple(entry["acts"]))
    return task, tuple(map(float, entry["scores"]))


def _unwritable(path: Path, error: OSError) -> LeaktightError:
    return LeaktightError(
        f"The file `{path}` cannot be written: {reason(error)}. Free some space, or choose another folder."
    )
