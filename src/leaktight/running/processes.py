"""Worker processes: each with one torch thread, its own memory, and a pipe to whoever started it."""

from __future__ import annotations

import dataclasses
import multiprocessing
import multiprocessing.connection
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from types import TracebackType
from typing import Self

import torch

from leaktight.core.errors import LeaktightError
from leaktight.running.file_cache import Folder
from leaktight.running.worker_pool import Advance, PoolResult, PoolTask, TaskQueue, Worker, WorkerPool, Workers, WorkerSetup

STARTS = 3
"""How many processes in a row may end before they are ready: one may be killed then, but not every time."""
_READY, _ADVANCE, _DONE = b"ready", b"advance", b"done"
_PATIENCE = 5.0


@dataclasses.dataclass
class _Worker(Worker):
    process: SpawnProcess
    connection: Connection


class Processes:
    """Does errands in worker processes.

    A process that dies costs its errand another attempt in a fresh process; an errand that takes its process down twice is
    given up. One that dies while it starts is started again, some times. The processes are started afresh (not forked), share the work's folder, ignore Ctrl-C (whoever hired them ends them)
    and end themselves when the process that started them is gone.

    Args:
        workers: how many processes, at least 1.
        work: what they do.
    """

    def __init__(self, workers: int, work: WorkerSetup) -> None:
        self._work = work
        self._waiting = TaskQueue()
        self._workers: list[_Worker] = []
        self._size = workers
        self._failed_starts = 0

    def submit(self, errand: PoolTask) -> None:
        """Take an errand."""
        self._waiting.add(errand)
        self._deal()

    def next(self, advance: Advance) -> PoolResult:
        """Wait for the first answer of any worker."""
        while True:
            # Not before the last answer was written: what is finished is then never more than one errand behind for each worker.
            self._deal()
            answer = self._heard(advance)
            if answer is not None:
                return answer

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """End every worker, busy or not."""
        for worker in self._workers:
            worker.connection.close()
            worker.process.terminate()
        for worker in self._workers:
            _reap(worker.process)
        self._workers.clear()
        self._waiting.clear()

    def _deal(self) -> None:
        self._waiting.deal(self._workers, self._size, lambda: _started(self._work), self._give)

    def _give(self, worker: _Worker, errand: PoolTask) -> None:
        worker.errand = errand
        try:
            worker.connection.send_bytes(errand.content)
        except OSError:
            # It died while it was idle: `_heard` will see its closed pipe and find it a successor.
            return

    def _heard(self, advance: Advance) -> PoolResult | None:
        """Listen until a worker speaks or dies; return the answer, if that is what it was."""
        spoken = multiprocessing.connection.wait([worker.connection for worker in self._workers])
        worker = next(worker for worker in self._workers if worker.connection in spoken)
        try:
            what, *numbers = worker.connection.recv_bytes().split()
            if what == _READY:
                worker.ready, self._failed_starts = True, 0
                return None
            if what == _ADVANCE:
                if worker.errand is not None:
                    advance(worker.errand.name, *map(int, numbers))
                return None
            parts = tuple(worker.connection.recv_bytes() for _ in range(int(numbers[0])))
        except (EOFError, OSError):
            return self._reap_worker(worker)
        errand, worker.errand = worker.errand, None
        return PoolResult(errand.name, parts) if errand is not None else None

    def _reap_worker(self, worker: _Worker) -> PoolResult | None:
        """Remove a dead worker; its errand is tried again, or given up."""
        self._workers.remove(worker)
        worker.connection.close()
        code = _reap(worker.process)
        self._failed_starts += not worker.ready
        if self._failed_starts >= STARTS:
            raise LeaktightError(
                f"A worker process could not start ({_ended(code)}). "
                'In a script, start the work under `if __name__ == "__main__":`, or use one worker.'
            )
        return None if worker.errand is None else self._waiting.again(worker.errand, _ended(code))


def start_pool(workers: Workers, work: WorkerSetup) -> WorkerPool:
    """Return the crew that some workers are: so many processes, or whom else they stand for."""
    return Processes(workers, work) if isinstance(workers, int) else workers(work)


def _started(work: WorkerSetup) -> _Worker:
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=_work, args=(there, work), name="leaktight-worker", daemon=True)
    with _deaf_to_interrupts():
        process.start()
    there.close()
    return _Worker(process, here)


@contextmanager
def _deaf_to_interrupts() -> Iterator[None]:
    """Ignore Ctrl-C in the block: a process started in it ignores it from its first moment, before any of its code runs."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _reap(process: SpawnProcess) -> int | None:
    process.join(_PATIENCE)
    if process.is_alive():
        process.kill()
        process.join()
    return process.exitcode


def _ended(code: int | None) -> str:
    if code is not None and code < 0:
        return f"signal {signal.Signals(-code).name}"
    return f"exit code {code}"


def _work(connection: Connection, work: WorkerSetup) -> None:
    """Do errands until the pipe closes: what runs in a worker process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    torch.set_num_threads(1)
    hand = work.make(Folder(work.folder), work.settings)
    connection.send_bytes(_READY)

    def advance(done: int, total: int) -> None:
        connection.send_bytes(b"%s %d %d" % (_ADVANCE, done, total))

    while True:
        try:
            content = connection.recv_bytes()
        except EOFError:
            return
        parts = hand(content, advance)
        connection.send_bytes(b"%s %d" % (_DONE, len(parts)))
        for part in parts:
            connection.send_bytes(part)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
