"""The worker of an audit: does a task, and turns whatever goes wrong in it into a result."""

from __future__ import annotations

import json
import time
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from leaktight.core import in_memory, registry
from leaktight.core.errors import LeaktightError, Refusal
from leaktight.core.factory import reason_of
from leaktight.core.record import Status
from leaktight.core.scenario import Progress
from leaktight.running import gallery
from leaktight.running.audit_task import AuditResult, AuditTask, without_record
from leaktight.running.file_cache import FileCache
from leaktight.running.fingerprint import list_first
from leaktight.running.measure import measure
from leaktight.running.training_cache import TrainingCache, TrainingSpec
from leaktight.running.worker_pool import WorkerSetup

PACE = 0.25
"""How many seconds lie at least between two reports of a task's progress."""

ELSEWHERE = (
    "The worker and the audit differ in {what}. Install the same on every machine, with the data under the same paths. "
    "If code was changed after it was loaded here, restart Python."
)

_OBJECTS = "objects"


class AuditWorker:
    """The worker function of an audit.

    Args:
        training_cache: the worker's training runs; a folder that all workers share saves work, but nothing depends on
            it.
    """

    def __init__(self, training_cache: TrainingCache) -> None:
        self._training_cache = training_cache

    def __call__(self, task: AuditTask, progress: Progress | None = None) -> AuditResult:
        """Do a task.

        Args:
            task: what to do.
            progress: called with 0 of 0 as it begins, and now and then while a training run lasts.
        """
        started = time.monotonic()
        if progress is not None:
            progress(0, 0)
        try:
            if isinstance(task.work, TrainingSpec):
                self._training_cache.get(task.work, progress and _slow_down(progress))
                return AuditResult(task, Status.DONE, seconds=time.monotonic() - started)
            record, pictures = measure(task.work, self._training_cache)
            seconds = time.monotonic() - started
            record = record.model_copy(update={"seconds": seconds})
            return AuditResult(task, record.status, record.reason, record, gallery.encode(pictures), seconds)
        # The one place for it: a plugin or a person's own model may fail in any way, and every planned cell must yield
        # a record.
        except Exception as error:
            return without_record(task, *classify_error(error), seconds=time.monotonic() - started)

    def answer(self, content: bytes, progress: Progress | None = None) -> tuple[bytes, bytes]:
        """Do an encoded task, and return its result as JSON, and its pictures.

        It is done only if this worker would make it from the same.
        """
        try:
            task = AuditTask.from_bytes(content)
            if task.fingerprint is not None:
                here = self._training_cache.fingerprint(task.work)
                if here.digest != task.fingerprint.digest:
                    raise LeaktightError(ELSEWHERE.format(what=list_first(here.changes(task.fingerprint))))
        # As above: a person's own data and model are looked at here, too.
        except Exception as error:
            status, reason = classify_error(error)
            return json.dumps({"status": status, "reason": reason, "record": None}).encode(), b""
        return self(task, progress).encode()


def audit_setup(folder: Path, objects: str = "") -> WorkerSetup[AuditTask, AuditResult]:
    """Return the setup of an audit's workers.

    Args:
        folder: where training runs are.
        objects: what settings name and only this process has in memory, encoded; empty if workers are this process.
    """
    return WorkerSetup(_make_worker, folder, {_OBJECTS: objects} if objects else {})


def _make_worker(cache: FileCache, options: Mapping[str, Any]) -> AuditWorker:
    registry.load()
    in_memory.add(in_memory.decode(options.get(_OBJECTS, "")))
    return AuditWorker(TrainingCache(cache))


def classify_error(error: Exception) -> tuple[Status, str]:
    """Return what an error makes of a task, and the reason in one sentence.

    The reason says what the error was and, if it was not foreseen, where.
    """
    if isinstance(error, LeaktightError):
        return Status.REFUSED if isinstance(error, Refusal) else Status.FAILED, str(error)
    if isinstance(error, MemoryError):
        return Status.FAILED, "The memory did not suffice. Use fewer victims, smaller batches or fewer workers."
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    return Status.FAILED, f"{reason_of(error)}{place}."


def _slow_down(progress: Progress) -> Progress:
    """Return a progress that is called no more often than a person can see."""
    last = -PACE

    def advance(done: int, total: int) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= PACE:
            last = now
            progress(done, total)

    return advance
