"""Engines: who does the jobs. This process, or a crew of workers that carry them as bytes."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

from leaktight.core import registry
from leaktight.core.record import Status
from leaktight.core.threads import one_thread
from leaktight.running.audit_task import AuditTask, TaskOutcome, answer, perform, without_record
from leaktight.running.file_cache import FileCache
from leaktight.running.processes import start_pool
from leaktight.running.training_cache import TrainingCache, TrainingSpec
from leaktight.running.worker_pool import PoolTask, WorkerFunction, WorkerPool, Workers, WorkerSetup

Advance = Callable[[AuditTask, int, int], None]
"""Takes in how much of a job is done, and of how much."""


class Backend(Protocol):
    """Takes jobs and hands back outcomes, in any order, one for each job; an audit needs no more than this."""

    def submit(self, job: AuditTask) -> None:
        """Take a job."""
        ...

    def next(self, advance: Advance) -> TaskOutcome:
        """Wait for an outcome, and say meanwhile how far long jobs are; only called while a job is out."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Stop what was started, finished or not."""


class SerialBackend:
    """Does one job after another in this process.

    It uses one torch thread, as a worker process does: a sum split over threads rounds differently.

    Args:
        folder: where trainings are kept.
    """

    def __init__(self, folder: Path) -> None:
        self._trainings = TrainingCache(folder)
        self._jobs: deque[AuditTask] = deque()

    def submit(self, job: AuditTask) -> None:
        """Take a job."""
        self._jobs.append(job)

    def next(self, advance: Advance) -> TaskOutcome:
        """Do the oldest job."""
        job = self._jobs.popleft()
        with one_thread():
            return perform(job, self._trainings, lambda done, total: advance(job, done, total))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Forget what was not done."""
        self._jobs.clear()


class PoolBackend:
    """Does jobs by a crew.

    Args:
        crew: who does the work; its work must be that of `work_of`.
        folder: where trainings are kept.
    """

    def __init__(self, crew: WorkerPool, folder: Path) -> None:
        self._crew, self._trainings = crew, TrainingCache(folder)
        self._jobs: dict[str, AuditTask] = {}

    def submit(self, job: AuditTask) -> None:
        """Send a job out, with what it is to be made from and the name of its training."""
        self._jobs[job.key] = job
        training = (self._trainings.name(_course(job, self._trainings)),)
        makes = training if isinstance(job.task, TrainingSpec) else ()
        content = job.encode(self._trainings.fingerprint(job.task))
        self._crew.submit(PoolTask(job.key, content, () if makes else training, makes))

    def next(self, advance: Advance) -> TaskOutcome:
        """Wait for the first answer; a job whose workers died is failed."""
        found = self._crew.next(lambda name, done, total: advance(self._jobs[name], done, total))
        job = self._jobs[found.name]
        if found.lost:
            return without_record(job, Status.FAILED, found.lost)
        if isinstance(job.task, TrainingSpec):
            self._trainings.tidy(job.task)
        return TaskOutcome.decode(job, *found.parts)

    def __enter__(self) -> Self:
        self._crew.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Stop the crew."""
        self._crew.__exit__(kind, error, trace)


def backend_of(workers: Workers, folder: Path) -> Backend:
    """Return the engine for some workers.

    Args:
        workers: how many processes, 1 being this one, or what hires another crew.
        folder: where trainings are kept.
    """
    if workers == 1:
        return SerialBackend(folder)
    return PoolBackend(start_pool(workers, work_of(folder)), folder)


def work_of(folder: Path) -> WorkerSetup:
    """Return the work of an audit's workers, with trainings in a folder."""
    return WorkerSetup(_hand, folder)


def _hand(shelf: FileCache, settings: Mapping[str, Any]) -> WorkerFunction:
    registry.load()
    trainings = TrainingCache(shelf)
    return lambda content, progress: answer(content, trainings, progress)


def _course(job: AuditTask, trainings: TrainingCache) -> TrainingSpec:
    return job.task if isinstance(job.task, TrainingSpec) else trainings.course(job.task)
