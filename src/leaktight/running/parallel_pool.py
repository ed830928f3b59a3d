"""Parallel pools: what worker processes and Ray have in common: tasks wait, workers start as needed, and may die."""

from __future__ import annotations

import abc
import dataclasses
from collections import Counter, deque
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from leaktight.core.errors import LeaktightError
from leaktight.running.worker_pool import PoolResult, Result, Task

ATTEMPTS = 2
"""How often a task is tried whose worker dies."""
STARTS = 3
"""How many workers in a row may end before they are ready: one may be killed then, but not every time."""


@dataclasses.dataclass(kw_only=True)
class Worker(Generic[Task]):
    """One of a pool: whether it has started, and what it is doing."""

    ready: bool = False
    task: Task | None = None


OwnWorker = TypeVar("OwnWorker", bound=Worker[Any])


class TaskQueue(Generic[Task]):
    """Tasks that wait for a worker, in order.

    A task whose worker died is the next, and is given up when that happens again.

    Example:
        >>> from types import SimpleNamespace
        >>> waiting = TaskQueue()
        >>> task = SimpleNamespace(name="one")
        >>> waiting.retry(task, "signal SIGKILL"), len(waiting)
        (None, 1)
        >>> waiting.retry(waiting.take(), "signal SIGKILL").lost
        'The worker process died 2 times (signal SIGKILL). If memory is short, use fewer workers or fewer victims.'
    """

    def __init__(self) -> None:
        self._tasks: deque[Task] = deque()
        self._deaths: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._tasks)

    def add(self, task: Task) -> None:
        """Queue a task."""
        self._tasks.append(task)

    def take(self) -> Task:
        """Return the next one."""
        return self._tasks.popleft()

    def assign(
        self,
        workers: list[OwnWorker],
        most: int,
        start: Callable[[], OwnWorker],
        give: Callable[[OwnWorker, Task], None],
    ) -> None:
        """Give tasks to idle workers; start as many more as there is work for, up to so many."""
        busy = sum(worker.task is not None for worker in workers)
        while len(workers) < min(most, busy + len(self)):
            workers.append(start())
        for worker in workers:
            if worker.task is None and worker.ready and self:
                give(worker, self.take())

    def retry(self, task: Task, ending: str) -> PoolResult[Task, Any] | None:
        """Take back a task whose worker ended like this; return its result if it is not tried again."""
        self._deaths[task.name] += 1
        if self._deaths[task.name] < ATTEMPTS:
            self._tasks.appendleft(task)
            return None
        memory = "If memory is short, use fewer workers or fewer victims."
        return PoolResult(task, lost=f"The worker process died {ATTEMPTS} times ({ending}). {memory}")

    def clear(self) -> None:
        """Forget all."""
        self._tasks.clear()


class ParallelPool(abc.ABC, Generic[Task, Result, OwnWorker]):
    """Does tasks by workers that can die.

    A worker that dies costs its task another attempt by a fresh one; a task that this happens to twice is given up. A
    worker that dies while it starts is started again, some times.

    Args:
        workers: how many at most, at least 1; they start as there is work for them.
    """

    def __init__(self, workers: int) -> None:
        self._size = workers
        self._waiting: TaskQueue[Task] = TaskQueue()
        self._workers: list[OwnWorker] = []
        self._failed_starts = 0

    @abc.abstractmethod
    def _start_worker(self) -> OwnWorker:
        """Start a worker, and do not wait until it is ready."""

    @abc.abstractmethod
    def _give(self, worker: OwnWorker, task: Task) -> None:
        """Hand a task to an idle worker."""

    @abc.abstractmethod
    def _receive(self, advance: Callable[[Task, int, int], None]) -> PoolResult[Task, Result] | None:
        """Wait until a worker sends something or dies; return the result, if that is what it sent."""

    @abc.abstractmethod
    def _end(self, workers: Sequence[OwnWorker]) -> None:
        """End workers, busy or not."""

    def submit(self, task: Task) -> None:
        """Take a task."""
        self._waiting.add(task)
        self._assign()

    def next(self, advance: Callable[[Task, int, int], None]) -> PoolResult[Task, Result]:
        """Wait for the first result of any worker."""
        while True:
            # Not before the last result was written: what is finished is then never more than one task behind for each
            # worker.
            self._assign()
            result = self._receive(advance)
            if result is not None:
                return result

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End every worker, busy or not."""
        self._end(self._workers)
        self._workers.clear()
        self._waiting.clear()

    def _assign(self) -> None:
        self._waiting.assign(self._workers, self._size, self._start_worker, self._give)

    def _mark_ready(self, worker: OwnWorker) -> None:
        """Note that a worker has started, which makes up for failed starts before it."""
        worker.ready, self._failed_starts = True, 0

    def _replace(self, worker: OwnWorker, ending: str, fault: str) -> PoolResult[Task, Result] | None:
        """Forget a dead worker; its task is tried again, or given up.

        Args:
            worker: it has ended.
            ending: how.
            fault: what to say if workers end again and again before they are ready.
        """
        self._workers.remove(worker)
        self._failed_starts += not worker.ready
        if self._failed_starts >= STARTS:
            raise LeaktightError(fault)
        return None if worker.task is None else self._waiting.retry(worker.task, ending)
