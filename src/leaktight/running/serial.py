"""The serial pool: this process does one task after another, and encodes nothing."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import Generic, Self

from leaktight.core.threads import one_thread
from leaktight.running.file_cache import Folder
from leaktight.running.worker_pool import PoolResult, Result, Task, WorkerSetup


class Serial(Generic[Task, Result]):
    """Does tasks in this process when results are asked for.

    It uses one torch thread, as a worker process does: a sum split over threads rounds differently.

    Args:
        setup: what it does.
    """

    def __init__(self, setup: WorkerSetup[Task, Result]) -> None:
        self._function = setup.make(Folder(setup.folder), setup.options)
        self._tasks: deque[Task] = deque()

    def submit(self, task: Task) -> None:
        """Take a task."""
        self._tasks.append(task)

    def next(self, advance: Callable[[Task, int, int], None]) -> PoolResult[Task, Result]:
        """Do the oldest task."""
        task = self._tasks.popleft()
        with one_thread():
            return PoolResult(task, self._function(task, lambda done, total: advance(task, done, total)))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Forget what was not done."""
        self._tasks.clear()
