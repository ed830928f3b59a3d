"""Workers on Ray: each an actor with one torch thread, that is sent what it needs and keeps nothing on disk."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import queue
import sys
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from types import ModuleType, TracebackType
from typing import Any, Self

from leaktight.core.errors import LeaktightError
from leaktight.running.file_cache import Folder, MemoryCache
from leaktight.running.worker_pool import Advance, PoolResult, PoolTask, TaskQueue, Worker, WorkerSetup

STARTS = 3
"""How many workers in a row may die before they are ready; a machine may be lost meanwhile, but not every time."""
KEPT = 8
"""How many of the latest files stay in Ray's store, for workers that need them next."""


@dataclasses.dataclass
class _Worker(Worker):
    actor: Any
    speaks: Any


class RayWorkers:
    """Does errands on Ray; see `ray_cluster.Cluster`, which makes it.

    An actor that dies, alone or with its machine, costs its errand another attempt by a fresh one; an errand that this happens to
    twice is given up. Files that errands need go out through Ray's store, once for each machine; those that they make come back with the answer.

    Args:
        ray: the package, connected.
        workers: how many actors at most; they start as there is work and room for them.
        work: what they do.
    """

    def __init__(self, ray: ModuleType, workers: int, work: WorkerSetup) -> None:
        self._ray, self._size, self._work = ray, workers, work
        self._folder = Folder(work.folder)
        self._waiting = TaskQueue()
        self._workers: list[_Worker] = []
        self._stored: OrderedDict[str, Any] = OrderedDict()
        self._failed_starts = 0

    def submit(self, errand: PoolTask) -> None:
        """Take an errand."""
        self._waiting.add(errand)
        self._deal()

    def next(self, advance: Advance) -> PoolResult:
        """Wait for the first answer of any worker."""
        while True:
            self._deal()
            answer = self._heard(advance)
            if answer is not None:
                return answer

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """End every worker, busy or not, and free what is in the store."""
        for worker in self._workers:
            self._kill(worker)
        self._workers.clear()
        self._stored.clear()
        self._waiting.clear()

    def _deal(self) -> None:
        self._waiting.deal(self._workers, self._size, self._started, self._give)

    def _started(self) -> _Worker:
        make = self._ray.remote(RayWorker).options(num_cpus=1, max_restarts=0, max_task_retries=0)
        files = self._sent(self._work.needs)
        spec = dataclasses.replace(self._work, folder=self._work.folder.absolute())
        actor = make.remote(spec, os.getcwd(), list(sys.path), list(files), *files.values())
        return _Worker(actor, actor.ready.remote())

    def _give(self, worker: _Worker, errand: PoolTask) -> None:
        files = self._sent(errand.needs)
        worker.errand = errand
        do = worker.actor.do.options(num_returns="streaming")
        worker.speaks = do.remote(errand.content, errand.makes, list(files), *files.values())

    def _sent(self, names: tuple[str, ...]) -> dict[str, Any]:
        """Put files into Ray's store; what is not there, the worker does without."""
        found = {}
        for name in names:
            if name not in self._stored and (content := self._folder.read(name)) is not None:
                self._stored[name] = self._ray.put(content)
            if name in self._stored:
                found[name] = self._stored[name]
                self._stored.move_to_end(name)
        while len(self._stored) > KEPT:
            self._stored.popitem(last=False)
        return found

    def _heard(self, advance: Advance) -> PoolResult | None:
        """Listen until a worker speaks or dies; return the answer, if that is what it was."""
        listened = {id(worker.speaks): worker for worker in self._workers if worker.speaks is not None}
        [spoken], _ = self._ray.wait([worker.speaks for worker in listened.values()], num_returns=1)
        worker = listened[id(spoken)]
        try:
            said = self._ray.get(next(spoken) if worker.ready else spoken)
        except (self._ray.exceptions.RayError, StopIteration) as error:
            return self._reap_worker(worker, error)
        if not worker.ready:
            worker.ready, worker.speaks, self._failed_starts = True, None, 0
            return None
        if worker.errand is None:
            return None
        if isinstance(said, tuple):
            advance(worker.errand.name, *said)
            return None
        # Only what was asked for: a machine elsewhere has no say in which files are written here.
        for name in worker.errand.makes:
            if name in said["made"]:
                self._folder.write(name, said["made"][name])
        errand, worker.errand, worker.speaks = worker.errand, None, None
        return PoolResult(errand.name, tuple(said["parts"]))

    def _reap_worker(self, worker: _Worker, error: BaseException) -> PoolResult | None:
        """Remove a dead worker; its errand is tried again, or given up."""
        self._workers.remove(worker)
        self._kill(worker)
        if not worker.ready:
            self._failed_starts += 1
            if self._failed_starts >= STARTS:
                raise LeaktightError(
                    f"A worker could not start on Ray ({_told(error)}). Install the same Leaktight on every machine."
                ) from error
        return None if worker.errand is None else self._waiting.again(worker.errand, "lost by Ray")

    def _kill(self, worker: _Worker) -> None:
        with contextlib.suppress(self._ray.exceptions.RayError, ValueError):
            self._ray.kill(worker.actor)


class RayWorker:
    """What runs on Ray: a hand, and the files it was sent in memory.

    Args:
        work: what it does.
        folder: where the caller works, for a person's own modules.
        path: where the caller looks for modules.
        names: the names of the files that follow.
        files: what the work needs from the start.
    """

    def __init__(self, work: WorkerSetup, folder: str, path: list[str], names: list[str], *files: bytes) -> None:
        import torch

        with contextlib.suppress(OSError):
            os.chdir(folder)
        sys.path[:] = [*path, *(place for place in sys.path if place not in path)]
        torch.set_num_threads(1)
        self._shelf = MemoryCache(dict(zip(names, files, strict=True)))
        self._first = frozenset(names)
        self._hand = work.make(self._shelf, work.settings)

    def ready(self) -> None:
        """Answer once everything is made ready."""

    def do(
        self, content: bytes, makes: tuple[str, ...], names: list[str], *files: bytes
    ) -> Iterator[tuple[int, int] | Mapping[str, Any]]:
        """Do an errand: yield how much is done and of how much, now and then, and its answer at the end."""
        for name in self._shelf.names() - self._first - set(names):
            self._shelf.drop(name)
        for name, file in zip(names, files, strict=True):
            self._shelf.write(name, file)
        told: queue.SimpleQueue[Any] = queue.SimpleQueue()
        thread = threading.Thread(target=self._work, args=(content, makes, told), daemon=True)
        thread.start()
        while isinstance(said := told.get(), tuple):
            yield said
        thread.join()
        if isinstance(said, BaseException):
            raise said
        yield said

    def _work(self, content: bytes, makes: tuple[str, ...], told: queue.SimpleQueue[Any]) -> None:
        import torch

        torch.set_num_threads(1)
        try:
            parts = self._hand(content, lambda done, total: told.put((done, total)))
            made = {name: file for name in makes if (file := self._shelf.read(name)) is not None}
            told.put({"parts": list(parts), "made": made})
        # Whatever it is: `do` would listen forever, and raises it to end this worker, as it would end a process.
        except BaseException as error:
            told.put(error)


def _told(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).strip().splitlines() if line.strip()]
    return lines[-1].rstrip(".") if lines else type(error).__name__
