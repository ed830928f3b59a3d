"""The replay guard: no noise is ever used for two different messages, not even after a party's process has died.

A step that is replayed after one side died draws the same noise again. So the same question must come again, and the
same answer goes out again, byte for byte. Anything else is refused: the difference of two answers would be free of
noise.
"""

from __future__ import annotations

import errno
import hashlib
import os
import struct
from pathlib import Path
from typing import BinaryIO

from leaktight.core.errors import InvalidValue, LeaktightError
from leaktight.core.input_file import LARGEST_STATE, read_input
from leaktight.core.private import reason, write_private
from leaktight.wire.fault import PeerFault
from leaktight.wire.frame import Sort

_RECORD = struct.Struct(">BQ32s")
_QUESTION = 0
"""The sort of questions' digests; those of answers have their frame's."""


class ReplayGuard:
    """Digests of each answer and of its question, activations or a gradient, since the oldest step that may recur.

    A digest is in the file before its answer goes out; a process that is killed loses none.

    Args:
        path: the file, for its owner alone.
        resumes: whether there must be such a file already, because there is a checkpoint; else one that is there is of
            another training run, and begins anew.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     guard = ReplayGuard(Path(folder) / "replay")
        ...     guard.add_question(3, b"activations")
        ...     guard.close()
        ...     guard.check_question(3, b"activations", "the activations", "feature-party")
        ...     guard.check_question(3, b"other ones", "the activations", "feature-party")
        Traceback (most recent call last):
        leaktight.wire.fault.PeerFault: feature-party must send the activations of step 3 as before \
when it replays that step. Got others instead; ...
    """

    def __init__(self, path: Path, resumes: bool = False) -> None:
        self.path = path
        self._digests: dict[tuple[int, int], bytes] = {}
        self._file: BinaryIO | None = None
        if resumes:
            self._read()
        else:
            write_private(path, b"")

    @property
    def latest(self) -> int:
        """The last step that anything was answered for; -1 if there is none."""
        return max((step for _, step in self._digests), default=-1)

    def check_question(self, step: int, payload: bytes, what: str, sender: str) -> None:
        """Raise if the step was answered before, for something else than this."""
        if self._digests.get((_QUESTION, step), _digest(payload)) != _digest(payload):
            raise PeerFault(
                f"{sender} must send {what} of step {step} as before when it replays that step. Got others instead; "
                "set `every` to 1 where computations do not repeat to the last bit."
            )

    def add_question(self, step: int, payload: bytes) -> None:
        """Note what a step is about to be answered for."""
        self._add((_QUESTION, step), _digest(payload))

    def add_answer(self, sort: Sort, step: int, payload: bytes) -> None:
        """Note what is about to be sent for a step; raise if something else was sent for it before."""
        place, digest = (int(sort), step), _digest(payload)
        if self._digests.get(place, digest) != digest:
            raise LeaktightError(
                f"The answer to step {step} must be the bytes that were sent before. It came out different and was "
                "not sent, because the difference of the two would be free of noise. Set `every` to 1, or start anew "
                "with another `checkpoint`."
            )
        self._add(place, digest)

    def forget(self, below: int) -> None:
        """Drop the steps that are never replayed any more."""
        self._digests = {place: digest for place, digest in self._digests.items() if place[1] >= below}
        self.close()
        write_private(self.path, b"".join(_RECORD.pack(*place, digest) for place, digest in self._digests.items()))

    def close(self) -> None:
        """Close the file; the next answer opens it again."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _add(self, place: tuple[int, int], digest: bytes) -> None:
        if place in self._digests:
            return
        try:
            if self._file is None:
                self._file = self.path.open("ab", buffering=0)
            # On a full disk a part may be written without an error.
            if self._file.write(_RECORD.pack(*place, digest)) != _RECORD.size:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            raise LeaktightError(
                f"The file `{self.path}` cannot be written: {reason(error)}. Nothing was sent; free some space, and "
                "start again."
            ) from error
        self._digests[place] = digest

    def _read(self) -> None:
        try:
            content = read_input(self.path, LARGEST_STATE)
        except OSError as error:
            raise InvalidValue(
                f"The file `{self.path}` cannot be read: {reason(error)}. It belongs to the checkpoint; bring it back, "
                "or start anew with another `checkpoint`."
            ) from error
        # A record that was cut off belongs to an answer that never went out.
        whole = len(content) - len(content) % _RECORD.size
        self._digests = {(sort, step): digest for sort, step, digest in _RECORD.iter_unpack(content[:whole])}
        if whole != len(content):
            self.forget(0)


def _digest(payload: bytes) -> bytes:
    return hashlib.sha256(payload).digest()
