"""Answered steps: what each answer was for, so that another message for the same step is refused, also after the process has died.

A step that is played again after one side died draws the same noise again, so the same question gets the same answer. Another
question would not be hidden by that noise: the difference of the two answers is free of it.
"""

from __future__ import annotations

import hashlib
import struct
from pathlib import Path
from typing import BinaryIO

from leaktight.core.errors import InvalidValue
from leaktight.core.private import private_file, reason, write_private
from leaktight.wire.fault import PeerFault

_RECORD = struct.Struct(">Q32s")


class Answered:
    """The digest of what each answer was for, activations or a gradient, since the oldest step that the party may go back to.

    A digest is in the file before its answer goes out; a process that is killed loses none.

    Args:
        path: the file, for its owner alone.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     answered = Answered(Path(folder) / "answered")
        ...     answered.add(3, b"activations")
        ...     answered.close()
        ...     answered.check(3, b"activations", "the activations", "feature-party")
        ...     answered.check(3, b"other ones", "the activations", "feature-party")
        Traceback (most recent call last):
        leaktight.wire.fault.PeerFault: feature-party must send the activations of step 3 as before when it goes back to that step. Got others instead; ...
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._digests: dict[int, bytes] = {}
        self._file: BinaryIO | None = None
        if path.exists():
            self._read()

    def check(self, step: int, payload: bytes, what: str, sender: str) -> None:
        """Raise if the step was answered before, for something else than this."""
        if step in self._digests and self._digests[step] != _digest(payload):
            raise PeerFault(
                f"{sender} must send {what} of step {step} as before when it goes back to that step. Got others instead; set `every` to 1 where computations do not repeat to the last bit."
            )

    def add(self, step: int, payload: bytes) -> None:
        """Note that a step is about to be answered."""
        if step in self._digests:
            return
        self._digests[step] = _digest(payload)
        if self._file is None:
            private_file(self.path)
            self._file = self.path.open("ab", buffering=0)
        self._file.write(_RECORD.pack(step, self._digests[step]))

    def forget(self, below: int) -> None:
        """Drop the steps that the party does not go back to any more."""
        self._digests = {step: digest for step, digest in self._digests.items() if step >= below}
        self.close()
        write_private(self.path, b"".join(_RECORD.pack(step, digest) for step, digest in self._digests.items()))

    def clear(self) -> None:
        """Drop all of them, for a new training."""
        self._digests = {}
        self.close()
        self.path.unlink(missing_ok=True)

    def close(self) -> None:
        """Close the file; the next answer opens it again."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _read(self) -> None:
        try:
            content = self.path.read_bytes()
        except OSError as error:
            raise InvalidValue(
                f"The file `{self.path}` cannot be read: {reason(error)}. Bring it back, or start anew."
            ) from error
        # A record that was cut off belongs to an answer that never went out.
        whole = len(content) - len(content) % _RECORD.size
        self._digests = dict(_RECORD.iter_unpack(content[:whole]))
        if whole != len(content):
            self.forget(0)


def _digest(payload: bytes) -> bytes:
    return hashlib.sha256(payload).digest()
