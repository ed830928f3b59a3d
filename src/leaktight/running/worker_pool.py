"""Worker pools: who does the tasks of an audit or a search. Serial, processes and Ray are behind one protocol."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, Protocol, Self, TypeVar

from leaktight.core.scenario import Progress
from leaktight.running.file_cache import FileCache

Result = TypeVar("Result")
ResultOut = TypeVar("ResultOut", covariant=True)


class PoolTask(Protocol[ResultOut]):
    """One thing to do. Bytes carry it to another process and its result back; in this one it is done as it is."""

    @property
    def name(self) -> str:
        """What tells it from every other task that is out at the same time."""
        ...

    @property
    def needs(self) -> tuple[str, ...]:
        """Names of files in the folder of the setup that it takes; a worker does without one that is not there."""
        ...

    @property
    def makes(self) -> tuple[str, ...]:
        """Names of files that are there afterwards if all goes well."""
        ...

    def encode(self) -> bytes:
        """Return what a worker has to be told."""
        ...

    def decode(self, parts: Sequence[bytes]) -> ResultOut:
        """Return the result that a worker's answer states."""
        ...


Task = TypeVar("Task", bound=PoolTask[Any])
TaskIn = TypeVar("TaskIn", bound=PoolTask[Any], contravariant=True)


class WorkerFunction(Protocol[TaskIn, ResultOut]):
    """Does tasks, in whichever process it was made."""

    def __call__(self, task: TaskIn, progress: Progress) -> ResultOut:
        """Do a task of this process."""
        ...

    def answer(self, content: bytes, progress: Progress) -> Sequence[bytes]:
        """Do a task that another process encoded; return its result in bytes, whatever goes wrong."""
        ...


@dataclasses.dataclass(frozen=True)
class WorkerSetup(Generic[Task, Result]):
    """What every worker of a pool makes ready once, to do any task with.

    Args:
        make: makes the worker function from the files it can reach and the options; a function that can be imported by
            name.
        folder: where the files are that workers need, and where those go that they make.
        options: anything that JSON can hold.
        needs: names of files in the folder that a worker needs from the start.
    """

    make: Callable[[FileCache, Mapping[str, Any]], WorkerFunction[Task, Result]]
    folder: Path
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    needs: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class PoolResult(Generic[Task, Result]):
    """What came of a task: the value that the worker returned, or why there is none."""

    task: Task
    value: Result | None = None
    lost: str = ""


class WorkerPool(Protocol[Task, Result]):
    """Takes tasks and hands back results, in any order, one for each task.

    A worker that dies costs its task another attempt by another worker, and nothing else.
    """

    def submit(self, task: Task) -> None:
        """Take a task."""
        ...

    def next(self, advance: Callable[[Task, int, int], None]) -> PoolResult[Task, Result]:
        """Wait for a result, and say meanwhile how much of a long task is done, and of how much.

        It is only called while a task is out.
        """
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop every worker, busy or not."""


Workers = int | Callable[[WorkerSetup[Any, Any]], WorkerPool[Any, Any]]
"""Who works: a number of local processes, or what starts another pool, such as `ray_cluster.Cluster`.

As a number, 1 is the caller's own process.
"""
