"""Checkpoints: the last two of a party.

With two, both parties still have a step in common wherever one of them stopped.
"""

from __future__ import annotations

import os
from pathlib import Path

from leaktight.core.errors import InvalidValue
from leaktight.core.local import Memory
from leaktight.core.private import check_writable, reason
from leaktight.learning.checkpoint import read_checkpoint, write_checkpoint


class Checkpoints:
    """Checkpoints by step, in the file `path` and, the one before it, in `path` with `.previous` added.

    Both parties write at the same steps, and the label party is ahead by at most one of them, so two are enough.

    Args:
        path: the newest checkpoint's file.

    Raises:
        InvalidValue: a file is there and is no checkpoint, or none could be written.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     checkpoints = Checkpoints(Path(folder) / "party.safetensors")
        ...     for step in (0, 50, 100):
        ...         checkpoints.write(step, {"party": {"step": float(step)}})
        ...     Checkpoints(checkpoints.path).steps
        [50, 100]
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.previous = path.with_name(f"{path.name}.previous")
        check_writable(path)
        self._steps: dict[int, Path] = {}
        for file in (self.previous, self.path):
            if file.exists():
                self._steps[_step(file, read_checkpoint(file))] = file

    @property
    def steps(self) -> list[int]:
        """The steps that there are checkpoints of, ascending."""
        return sorted(self._steps)

    def newest(self) -> Memory | None:
        """Return the latest checkpoint; None if there is none."""
        return self.read(self.steps[-1]) if self._steps else None

    def read(self, step: int) -> Memory:
        """Return the checkpoint of a step."""
        return read_checkpoint(self._steps[step])

    def write(self, step: int, state: Memory) -> None:
        """Write a checkpoint, and keep the one before it unless it is of the same step."""
        if self.path in self._steps.values() and self._steps.get(step) != self.path:
            try:
                os.replace(self.path, self.previous)
            except OSError as error:
                raise InvalidValue(
                    f"The file `{self.previous}` cannot be written: {reason(error)}. Choose another folder."
                ) from error
            before = next(step for step, file in self._steps.items() if file == self.path)
            self._steps = {before: self.previous}
        write_checkpoint(self.path, state)
        self._steps = {at: file for at, file in self._steps.items() if file != self.path} | {step: self.path}

    def drop_previous(self) -> None:
        """Remove the checkpoint before the newest."""
        self.previous.unlink(missing_ok=True)
        self._steps = {step: file for step, file in self._steps.items() if file != self.previous}


def _step(file: Path, state: Memory) -> int:
    party = state.get("party")
    step = party.get("step") if isinstance(party, dict) else None
    if not isinstance(step, float | int) or not float(step).is_integer():
        raise InvalidValue(
            f"The file `{file}` must be a party's checkpoint. It is not; name another one, or move it away."
        )
    return int(step)
