"""Crews: workers that do errands for an audit or a search. An errand is bytes out and bytes back; the crew decides who carries them."""

from __future__ import annotations

import dataclasses
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar

from leaktight.core.scenario import Progress
from leaktight.running.file_cache import FileCache

ATTEMPTS = 2
"""How often an errand is tried whose worker dies."""

WorkerFunction = Callable[[bytes, Progress], Sequence[bytes]]
"""Does one errand in a worker: its content and whom to tell of progress in, its answer out."""
Advance = Callable[[str, int, int], None]
"""Takes in how much of an errand is done, by its name, and of how much."""


@dataclasses.dataclass(frozen=True)
class WorkerSetup:
    """What every worker of a crew makes ready once, to do any errand with.

    Args:
        make: makes the worker's hand from the files on its shelf and the settings; a function that can be imported by name.
        folder: where the files are that workers need, and where those go that they make.
        settings: anything that JSON can hold.
        needs: names of files in the folder that a worker needs from the start.
    """

    make: Callable[[FileCache, Mapping[str, Any]], WorkerFunction]
    folder: Path
    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    needs: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class PoolTask:
    """One thing to do.

    Args:
        name: whose answer it is; no two that are out at the same time have the same.
        content: what to do.
        needs: names of files in the work's folder that it takes; one that is not there, the worker does without.
        makes: names of files that are there afterwards if all goes well.
    """

    name: str
    content: bytes
    needs: tuple[str, ...] = ()
    makes: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class PoolResult:
    """What came of an errand: the parts that the worker returned, or why there are none."""

    name: str
    parts: tuple[bytes, ...] = ()
    lost: str = ""


class WorkerPool(Protocol):
    """Workers. A worker that dies costs its errand another attempt by another worker, and nothing else."""

    def submit(self, errand: PoolTask) -> None:
        """Take an errand."""
        ...

    def next(self, advance: Advance) -> PoolResult:
        """Wait for an answer, and say meanwhile how far errands are; only called while one is out."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Stop every worker, busy or not."""


Workers = int | Callable[[WorkerSetup], WorkerPool]
"""Who works: a number of local processes, 1 being the caller's own; or what hires another crew, such as `ray_cluster.Cluster`."""


@dataclasses.dataclass(kw_only=True)
class Worker:
    """One of a crew: whether it has started, and what it is doing."""

    ready: bool = False
    errand: PoolTask | None = None


_W = TypeVar("_W", bound=Worker)


class TaskQueue:
    """Errands that wait for a worker, in order; one whose worker died is the next, and is given up when that happens again.

    Example:
        >>> waiting = TaskQueue()
        >>> errand = PoolTask("one", b"")
        >>> waiting.again(errand, "signal SIGKILL"), len(waiting)
        (None, 1)
        >>> waiting.again(waiting.take(), "signal SIGKILL").lost
        'The worker process died 2 times (signal SIGKILL). If memory is short, use fewer workers or fewer victims.'
    """

    def __init__(self) -> None:
        self._errands: deque[PoolTask] = deque()
        self._deaths: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._errands)

    def add(self, errand: PoolTask) -> None:
        """Queue an errand."""
        self._errands.append(errand)

    def take(self) -> PoolTask:
        """Return the next one."""
        return self._errands.popleft()

    def deal(self, workers: list[_W], most: int, start: Callable[[], _W], give: Callable[[_W, PoolTask], None]) -> None:
        """Give errands to idle workers; start as many more as there is work for, up to so many."""
        busy = sum(worker.errand is not None for worker in workers)
        while len(workers) < min(most, busy + len(self)):
            workers.append(start())
        for worker in workers:
            if worker.errand is None and worker.ready and self:
                give(worker, self.take())

    def again(self, errand: PoolTask, ended: str) -> PoolResult | None:
        """Take back an errand whose worker ended like this; return the answer if it is not tried again."""
        self._deaths[errand.name] += 1
        if self._deaths[errand.name] < ATTEMPTS:
            self._errands.appendleft(errand)
            return None
        memory = "If memory is short, use fewer workers or fewer victims."
        return PoolResult(errand.name, lost=f"The worker process died {ATTEMPTS} times ({ended}). {memory}")

    def clear(self) -> None:
        """Forget all."""
        self._errands.clear()
