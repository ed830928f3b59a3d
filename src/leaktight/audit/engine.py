"""Engines: who does the jobs. In this process here; in worker processes, see `workers`."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

import torch

from leaktight.audit.job import Job, Outcome, perform
from leaktight.audit.trainings import Trainings

Advance = Callable[[Job, int, int], None]
"""Takes in how much of a job is done, and of how much."""


class Engine(Protocol):
    """Takes jobs and hands back outcomes, in any order, one for each job; an audit needs no more than this."""

    def submit(self, job: Job) -> None:
        """Take a job."""
        ...

    def next(self, advance: Advance) -> Outcome:
        """Wait for an outcome, and say meanwhile how far long jobs are; only called while a job is out."""
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

    def next(self, advance: Advance) -> Outcome:
        """Do the oldest job."""
        job = self._jobs.popleft()
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            return perform(job, self._trainings, lambda done, total: advance(job, done, total))
        finally:
            torch.set_num_threads(threads)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Forget what was not done."""
        self._jobs.clear()
