"""Jobs: what goes out to a worker and what comes back. Plain JSON and safetensors, so that any engine can carry them."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from leaktight.audit import gallery
from leaktight.audit.runner import FAILURES, run_cell, unmeasured, verdict
from leaktight.audit.trainings import Course, Trainings
from leaktight.core.errors import LeaktightError
from leaktight.core.record import Cell, Record, Status


@dataclasses.dataclass(frozen=True)
class Job:
    """Something for a worker to do: a training (`Course`) or a measurement (`Cell`)."""

    task: Course | Cell

    @property
    def key(self) -> str:
        """The content key of what is to be done."""
        return self.task.key

    def encode(self) -> bytes:
        """Return the job as JSON."""
        kind = "train" if isinstance(self.task, Course) else "measure"
        return json.dumps({kind: self.task.to_dict()}).encode()

    @staticmethod
    def decode(content: bytes) -> Job:
        """Undo `encode`."""
        spec: dict[str, Any] = json.loads(content)
        return Job(Course.model_validate(spec["train"]) if "train" in spec else Cell.model_validate(spec["measure"]))


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What came of a job.

    Args:
        job: which one.
        status: done, refused or failed.
        reason: why, if not done.
        record: a cell's record; None for a training, whose file is its result.
        pictures: a cell's gallery as safetensors bytes; may be empty.
    """

    job: Job
    status: Status
    reason: str = ""
    record: Record | None = None
    pictures: bytes = b""

    @staticmethod
    def decode(job: Job, content: bytes, pictures: bytes) -> Outcome:
        """Return the outcome that a worker's `answer` states."""
        spec: dict[str, Any] = json.loads(content)
        if spec["record"] is None:
            return without_record(job, Status(spec["status"]), spec["reason"])
        return Outcome(job, Status(spec["status"]), spec["reason"], Record.model_validate(spec["record"]), pictures)


def without_record(job: Job, status: Status, reason: str = "") -> Outcome:
    """Return the outcome of a job that no worker made a record for; a cell gets one that says why."""
    record = unmeasured(job.task, status, reason) if isinstance(job.task, Cell) else None
    return Outcome(job, status, reason, record)


def answer(content: bytes, trainings: Trainings) -> tuple[bytes, bytes]:
    """Do an encoded job; return its outcome as JSON, and its pictures: all that a worker of any engine has to call."""
    try:
        outcome = perform(Job.decode(content), trainings)
        spec = {"status": outcome.status, "reason": outcome.reason, "record": outcome.record and outcome.record.to_dict()}
        return json.dumps(spec).encode(), outcome.pictures
    except LeaktightError as error:
        return json.dumps({"status": Status.FAILED, "reason": str(error), "record": None}).encode(), b""


def perform(job: Job, trainings: Trainings) -> Outcome:
    """Do a job in this process.

    Args:
        job: what to do.
        trainings: the worker's trainings; a folder that all workers share saves work, but nothing depends on it.
    """
    if isinstance(job.task, Cell):
        record, pictures = run_cell(job.task, trainings)
        return Outcome(job, record.status, record.reason, record, gallery.encode(pictures))
    try:
        trainings.get(job.task)
    except FAILURES as error:
        return without_record(job, *verdict(error))
    return Outcome(job, Status.DONE)
