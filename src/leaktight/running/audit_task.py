"""Tasks of an audit, and what comes of them. They travel as JSON and safetensors, so that any pool can carry them."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from typing import Any

from leaktight.core.errors import Refusal
from leaktight.core.probe import Attempt, attack_of
from leaktight.core.record import Cell, Record, Status
from leaktight.running.fingerprint import Fingerprint
from leaktight.running.training_cache import TrainingSpec


@dataclasses.dataclass(frozen=True)
class AuditTask:
    """Something for a worker to do.

    Args:
        work: what to train (`TrainingSpec`) or to measure (`Cell`).
        fingerprint: what it is to be made from; a worker that would make it from something else says so. None compares
            nothing.
        training: the training run that a cell needs; only a worker that shares no folder has to be sent its file.
    """

    work: TrainingSpec | Cell
    fingerprint: Fingerprint | None = dataclasses.field(default=None, compare=False)
    training: TrainingSpec | None = dataclasses.field(default=None, compare=False)

    @property
    def name(self) -> str:
        """The content key of what is to be done."""
        return self.work.key

    @property
    def needs(self) -> tuple[str, ...]:
        """The file of the training run that a cell needs."""
        return () if self.training is None else (self.training.file_name,)

    @property
    def makes(self) -> tuple[str, ...]:
        """The file of a training run."""
        return (self.work.file_name,) if isinstance(self.work, TrainingSpec) else ()

    def encode(self) -> bytes:
        """Return the task as JSON."""
        kind = "train" if isinstance(self.work, TrainingSpec) else "measure"
        fingerprint = None if self.fingerprint is None else dict(self.fingerprint.parts)
        return json.dumps({kind: self.work.to_dict(), "fingerprint": fingerprint}).encode()

    @staticmethod
    def from_bytes(content: bytes) -> AuditTask:
        """Undo `encode`."""
        spec: dict[str, Any] = json.loads(content)
        work = TrainingSpec.model_validate(spec["train"]) if "train" in spec else Cell.model_validate(spec["measure"])
        parts = spec["fingerprint"]
        return AuditTask(work, None if parts is None else Fingerprint(parts))

    def decode(self, parts: Sequence[bytes]) -> AuditResult:
        """Return the result that a worker encoded."""
        content, pictures = parts
        spec: dict[str, Any] = json.loads(content)
        if spec["record"] is None:
            return without_record(self, Status(spec["status"]), spec["reason"], spec.get("seconds", 0.0))
        record = Record.model_validate(spec["record"])
        return AuditResult(self, Status(spec["status"]), spec["reason"], record, pictures, record.seconds)

    def __str__(self) -> str:
        """Say in a few words what it is."""
        work = self.work
        if isinstance(work, TrainingSpec):
            attack = None if work.entrant is None else attack_of(work.entrant)
            inside = "" if attack is None else f" and {attack.kind} inside{', on noise' if work.null else ''}"
            return f"training with {work.defence}{inside}"
        check = {"null": ", on noise", "control": ", a control"}.get(work.purpose, "")
        return f"{work.label} against {work.defence}, batch {work.batch_size}, {work.stage}{check}"


@dataclasses.dataclass(frozen=True)
class AuditResult:
    """What came of a task.

    Args:
        task: which one.
        status: done, refused or failed.
        reason: why, if not done.
        record: a cell's record; None for a training run, whose file is its result.
        pictures: a cell's gallery as safetensors bytes; may be empty.
        seconds: how long it took; 0 if nothing was done.
    """

    task: AuditTask
    status: Status
    reason: str = ""
    record: Record | None = None
    pictures: bytes = b""
    seconds: float = 0.0

    def encode(self) -> tuple[bytes, bytes]:
        """Return it as JSON, and the pictures; `AuditTask.decode` undoes it."""
        record = self.record and self.record.to_dict()
        spec = {"status": self.status, "reason": self.reason, "record": record, "seconds": self.seconds}
        return json.dumps(spec).encode(), self.pictures


def without_record(task: AuditTask, status: Status, reason: str = "", seconds: float = 0.0) -> AuditResult:
    """Return the result of a task that gave no readings; a cell gets a record that says why."""
    record = (
        Record(cell=task.work, status=status, reason=reason, seconds=seconds) if isinstance(task.work, Cell) else None
    )
    return AuditResult(task, status, reason, record, seconds=seconds)


def refusal(cell: Cell) -> AuditResult | None:
    """Return the result of a cell whose attack needs what the threat model withholds.

    Nothing has to be trained for it.
    """
    if isinstance(cell.probe, Attempt):
        try:
            cell.probe.attack.check(cell.probe.threat.knows)
        except Refusal as reason:
            return without_record(AuditTask(cell), Status.REFUSED, str(reason))
    return None
