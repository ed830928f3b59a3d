"""Workers on Ray: each an actor with one torch thread, that is sent what it needs and keeps nothing on disk."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import queue
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import ModuleType
from typing import Any

from leaktight.running.file_cache import Folder, MemoryCache
from leaktight.running.parallel_pool import ParallelPool, Worker
from leaktight.running.worker_pool import PoolResult, Result, Task, WorkerSetup

KEPT = 8
"""How many of the latest files stay in Ray's store, for workers that need them next."""


@dataclasses.dataclass
class _Worker(Worker[Any]):
    actor: Any
    stream: Any


class RayWorkers(ParallelPool[Task, Result, _Worker]):
    """Does tasks on Ray; see `ray_cluster.Cluster`, which makes it.

    An actor may die alone or with its machine. Files that tasks need go out through Ray's store, once for each machine;
    those that they make come back with the result.

    Args:
        ray: the package, connected.
        workers: how many actors at most; they start as there is work and room for them.
        setup: what they do.
    """

    def __init__(self, ray: ModuleType, workers: int, setup: WorkerSetup[Task, Result]) -> None:
        super().__init__(workers)
        self._ray, self._setup = ray, setup
        self._folder = Folder(setup.folder)
        self._stored: OrderedDict[str, Any] = OrderedDict()

    def _end(self, workers: Sequence[_Worker]) -> None:
        for worker in workers:
            self._kill(worker)
        self._stored.clear()

    def _start_worker(self) -> _Worker:
        make = self._ray.remote(RayWorker).options(num_cpus=1, max_restarts=0, max_task_retries=0)
        files = self._store(self._setup.needs)
        setup = dataclasses.replace(self._setup, folder=self._setup.folder.absolute())
        actor = make.remote(setup, os.getcwd(), list(sys.path), list(files), *files.values())
        return _Worker(actor, actor.ready.remote())

    def _give(self, worker: _Worker, task: Task) -> None:
        files = self._store(task.needs)
        worker.task = task
        do = worker.actor.do.options(num_returns="streaming")
        worker.stream = do.remote(task.encode(), task.makes, list(files), *files.values())

    def _store(self, names: tuple[str, ...]) -> dict[str, Any]:
        """Put files into Ray's store; a worker does without one that is not there."""
        files = {}
        for name in names:
            if name not in self._stored and (content := self._folder.read(name)) is not None:
                self._stored[name] = self._ray.put(content)
            if name in self._stored:
                files[name] = self._stored[name]
                self._stored.move_to_end(name)
        while len(self._stored) > KEPT:
            self._stored.popitem(last=False)
        return files

    def _receive(self, advance: Callable[[Task, int, int], None]) -> PoolResult[Task, Result] | None:
        streams = {id(worker.stream): worker for worker in self._workers if worker.stream is not None}
        [readable], _ = self._ray.wait([worker.stream for worker in streams.values()], num_returns=1)
        worker = streams[id(readable)]
        try:
            item = self._ray.get(next(readable) if worker.ready else readable)
        except (self._ray.exceptions.RayError, StopIteration) as error:
            self._kill(worker)
            fault = (
                f"A worker could not start on Ray ({_last_line(error)}). Install the same Leaktight on every machine."
            )
            return self._replace(worker, "lost by Ray", fault)
        if not worker.ready:
            self._mark_ready(worker)
            worker.stream = None
            return None
        if worker.task is None:
            return None
        if isinstance(item, tuple):
            advance(worker.task, *item)
            return None
        # Only what was asked for: a machine elsewhere has no say in which files are written here.
        for name in worker.task.makes:
            if name in item["files"]:
                self._folder.write(name, item["files"][name])
        task, worker.task, worker.stream = worker.task, None, None
        return PoolResult(task, task.decode(item["parts"]))

    def _kill(self, worker: _Worker) -> None:
        with contextlib.suppress(self._ray.exceptions.RayError, ValueError):
            self._ray.kill(worker.actor)


class RayWorker:
    """What runs on Ray: a worker function, and the files it was sent in memory.

    Args:
        setup: what it does.
        folder: where the caller works, for a person's own modules.
        path: where the caller looks for modules.
        names: the names of the files that follow.
        files: what a worker needs from the start.
    """

    def __init__(
        self, setup: WorkerSetup[Any, Any], folder: str, path: list[str], names: list[str], *files: bytes
    ) -> None:
        import torch

        with contextlib.suppress(OSError):
            os.chdir(folder)
        sys.path[:] = [*path, *(place for place in sys.path if place not in path)]
        torch.set_num_threads(1)
        self._cache = MemoryCache(dict(zip(names, files, strict=True)))
        self._first = frozenset(names)
        self._function = setup.make(self._cache, setup.options)

    def ready(self) -> None:
        """Answer once everything is made ready."""

    def do(
        self, content: bytes, makes: tuple[str, ...], names: list[str], *files: bytes
    ) -> Iterator[tuple[int, int] | Mapping[str, Any]]:
        """Do a task: yield how much is done and of how much, now and then, and its result at the end."""
        for name in self._cache.names() - self._first - set(names):
            self._cache.drop(name)
        for name, file in zip(names, files, strict=True):
            self._cache.write(name, file)
        items: queue.SimpleQueue[Any] = queue.SimpleQueue()
        thread = threading.Thread(target=self._work, args=(content, makes, items), daemon=True)
        thread.start()
        while isinstance(item := items.get(), tuple):
            yield item
        thread.join()
        if isinstance(item, BaseException):
            raise item
        yield item

    def _work(self, content: bytes, makes: tuple[str, ...], items: queue.SimpleQueue[Any]) -> None:
        import torch

        torch.set_num_threads(1)
        try:
            parts = self._function.answer(content, lambda done, total: items.put((done, total)))
            files = {name: file for name in makes if (file := self._cache.read(name)) is not None}
            items.put({"parts": list(parts), "files": files})
        # Whatever it is: `do` would wait forever, and raises it to end this worker, as it would end a process.
        except BaseException as error:
            items.put(error)


def _last_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).strip().splitlines() if line.strip()]
    return lines[-1].rstrip(".") if lines else type(error).__name__
