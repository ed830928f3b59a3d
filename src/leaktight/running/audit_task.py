"""Jobs: what goes out to a worker and what comes back. Plain JSON and safetensors, so that any engine can carry them."""

from __future__ import annotations

import dataclasses
import json
import time
import traceback
from pathlib import Path
from typing import Any

from leaktight.core.errors import LeaktightError, Refusal
from leaktight.core.factory import reason_of
from leaktight.core.probe import Attempt
from leaktight.core.record import Cell, Record, Status
from leaktight.core.scenario import Progress
from leaktight.running import gallery
from leaktight.running.fingerprint import Fingerprint, list_first
from leaktight.running.measure import measure
from leaktight.running.training_cache import TrainingCache, TrainingSpec

PACE = 0.25
"""How many seconds lie at least between two reports of a job's progress."""

ELSEWHERE = (
    "The worker and the audit differ in {what}. Install the same on every machine, with the data under the same paths. "
    "If code was changed after it was loaded here, restart Python."
)


@dataclasses.dataclass(frozen=True)
class AuditTask:
    """Something for a worker to do: a training (`TrainingSpec`) or a measurement (`Cell`)."""

    task: TrainingSpec | Cell

    @property
    def key(self) -> str:
        """The content key of what is to be done."""
        return self.task.key

    def encode(self, fingerprint: Fingerprint | None = None) -> bytes:
        """Return the job as JSON.

        Args:
            fingerprint: what it is to be made from; a worker that would make it from something else says so. None if it is not to be compared.
        """
        kind = "train" if isinstance(self.task, TrainingSpec) else "measure"
        return json.dumps({kind: self.task.to_dict(), "fingerprint": fingerprint and dict(fingerprint.parts)}).encode()

    @staticmethod
    def decode(content: bytes) -> AuditTask:
        """Undo `encode`."""
        spec: dict[str, Any] = json.loads(content)
        return AuditTask(
            TrainingSpec.model_validate(spec["train"]) if "train" in spec else Cell.model_validate(spec["measure"])
        )


@dataclasses.dataclass(frozen=True)
class TaskOutcome:
    """What came of a job.

    Args:
        job: which one.
        status: done, refused or failed.
        reason: why, if not done.
        record: a cell's record; None for a training, whose file is its result.
        pictures: a cell's gallery as safetensors bytes; may be empty.
    """

    job: AuditTask
    status: Status
    reason: str = ""
    record: Record | None = None
    pictures: bytes = b""

    @staticmethod
    def decode(job: AuditTask, content: bytes, pictures: bytes) -> TaskOutcome:
        """Return the outcome that a worker's `answer` states."""
        spec: dict[str, Any] = json.loads(content)
        if spec["record"] is None:
            return without_record(job, Status(spec["status"]), spec["reason"])
        return TaskOutcome(job, Status(spec["status"]), spec["reason"], Record.model_validate(spec["record"]), pictures)


def without_record(job: AuditTask, status: Status, reason: str = "", seconds: float = 0.0) -> TaskOutcome:
    """Return the outcome of a job that gave no readings; a cell gets a record that says why."""
    record = Record(cell=job.task, status=status, reason=reason, seconds=seconds) if isinstance(job.task, Cell) else None
    return TaskOutcome(job, status, reason, record)


def refused(cell: Cell) -> TaskOutcome | None:
    """Return the outcome of a cell whose attack needs what the threat model withholds: no training has to be done for it."""
    if isinstance(cell.probe, Attempt):
        try:
            cell.probe.attack.check(cell.probe.threat.knows)
        except Refusal as refusal:
            return without_record(AuditTask(cell), Status.REFUSED, str(refusal))
    return None


def answer(content: bytes, trainings: TrainingCache, progress: Progress | None = None) -> tuple[bytes, bytes]:
    """Do an encoded job; return its outcome as JSON, and its pictures: all that a worker of any crew has to call."""
    try:
        job, parts = AuditTask.decode(content), json.loads(content)["fingerprint"]
        asked = Fingerprint(parts or {})
        here = trainings.fingerprint(job.task) if parts else asked
        if here.digest != asked.digest:
            raise LeaktightError(ELSEWHERE.format(what=list_first(here.changes(asked))))
    # As in `perform`: a person's own data and model are looked at here, too.
    except Exception as error:
        status, reason = verdict(error)
        return json.dumps({"status": status, "reason": reason, "record": None}).encode(), b""
    outcome = perform(job, trainings, progress)
    spec = {"status": outcome.status, "reason": outcome.reason, "record": outcome.record and outcome.record.to_dict()}
    return json.dumps(spec).encode(), outcome.pictures


def perform(job: AuditTask, trainings: TrainingCache, progress: Progress | None = None) -> TaskOutcome:
    """Do a job in this process; whatever goes wrong in it becomes its outcome.

    Args:
        job: what to do.
        trainings: the worker's trainings; a folder that all workers share saves work, but nothing depends on it.
        progress: called now and then while a training lasts.
    """
    started = time.monotonic()
    try:
        if isinstance(job.task, TrainingSpec):
            trainings.get(job.task, progress and _paced(progress))
            return TaskOutcome(job, Status.DONE)
        record, pictures = measure(job.task, trainings)
        record = record.model_copy(update={"seconds": time.monotonic() - started})
        return TaskOutcome(job, record.status, record.reason, record, gallery.encode(pictures))
    # The one place for it: a plugin or a person's own model may fail in any way, and every planned cell must yield a record.
    except Exception as error:
        return without_record(job, *verdict(error), seconds=time.monotonic() - started)


def verdict(error: Exception) -> tuple[Status, str]:
    """Return what an error makes of a job, and the reason in one sentence: what it was, and where for one not foreseen."""
    if isinstance(error, LeaktightError):
        return Status.REFUSED if isinstance(error, Refusal) else Status.FAILED, str(error)
    if isinstance(error, MemoryError):
        return Status.FAILED, "The memory did not suffice. Use fewer victims, smaller batches or fewer workers."
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    return Status.FAILED, f"{reason_of(error)}{place}."


def _paced(progress: Progress) -> Progress:
    """Return a progress that is called no more often than a person can see."""
    last = -PACE

    def called(done: int, total: int) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= PACE:
            last = now
            progress(done, total)

    return called
