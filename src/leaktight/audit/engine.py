"""Engines: who does the jobs. In this process here; in worker processes, see `workers`."""

from __future__ import annotations

from collections import deque
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

import torch

from leaktight.audit.job import Job, Outcome, perform
from leaktight.audit.trainings import Trainings


class Engine(Protocol):
    """Takes jobs and hands back outcomes, in any order, one for each job; an audit needs no more than this."""

    def submit(self, job: Job) -> None:
        """Take a job."""
        ...

    def next(self) -> Outcome:
        """Wait for an outcome; only called while a job is out."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Stop what was started, finished or not."""


class InProcess:
    """Does one job after another in this process.

    It uses one torch thread, as a worker process does: a sum split over threads rounds differently.

    Args:
        folder: where trainings are kept.
    """

    def __init__(self, folder: Path) -> None:
        self._trainings = Trainings(folder)
        self._jobs: deque[Job] = deque()

    def submit(self, job: Job) -> None:
        """Take a job."""
        self._jobs.append(job)

    def next(self) -> Outcome:
        """Do the oldest job."""
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            return perform(self._jobs.popleft(), self._trainings)
        finally:
            torch.set_num_threads(threads)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Forget what was not done."""
        self._jobs.clear()
