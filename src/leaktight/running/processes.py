"""Worker processes: each with one torch thread, its own memory, and a pipe to whoever started it."""

from __future__ import annotations

import dataclasses
import multiprocessing
import multiprocessing.connection
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from typing import Any

import torch

from leaktight.running.file_cache import Folder
from leaktight.running.parallel_pool import ParallelPool, Worker
from leaktight.running.serial import Serial
from leaktight.running.worker_pool import PoolResult, Result, Task, WorkerPool, Workers, WorkerSetup

_READY, _ADVANCE, _DONE = b"ready", b"advance", b"done"
_PATIENCE = 5.0


@dataclasses.dataclass
class _Worker(Worker[Any]):
    process: SpawnProcess
    connection: Connection


class Processes(ParallelPool[Task, Result, _Worker]):
    """Does tasks in worker processes.

    Processes are started afresh (not forked), share the folder of the setup, ignore Ctrl-C (whoever started them ends
    them) and end themselves when the process that started them is gone.

    Args:
        workers: how many processes, at least 1.
        setup: what they do.
    """

    def __init__(self, workers: int, setup: WorkerSetup[Task, Result]) -> None:
        super().__init__(workers)
        self._setup = setup

    def _start_worker(self) -> _Worker:
        return _start_process(self._setup)

    def _end(self, workers: Sequence[_Worker]) -> None:
        for worker in workers:
            worker.connection.close()
            worker.process.terminate()
        for worker in workers:
            _reap(worker.process)

    def _give(self, worker: _Worker, task: Task) -> None:
        worker.task = task
        content = task.encode()
        try:
            worker.connection.send_bytes(content)
        except OSError:
            # It died while it was idle: `_receive` will see its closed pipe and find it a successor.
            return

    def _receive(self, advance: Callable[[Task, int, int], None]) -> PoolResult[Task, Result] | None:
        readable = multiprocessing.connection.wait([worker.connection for worker in self._workers])
        worker = next(worker for worker in self._workers if worker.connection in readable)
        try:
            what, *numbers = worker.connection.recv_bytes().split()
            if what == _READY:
                self._mark_ready(worker)
                return None
            if what == _ADVANCE:
                if worker.task is not None:
                    advance(worker.task, *map(int, numbers))
                return None
            parts = tuple(worker.connection.recv_bytes() for _ in range(int(numbers[0])))
        except (EOFError, OSError):
            return self._lose(worker)
        task, worker.task = worker.task, None
        return PoolResult(task, task.decode(parts)) if task is not None else None

    def _lose(self, worker: _Worker) -> PoolResult[Task, Result] | None:
        worker.connection.close()
        ending = _describe_exit(_reap(worker.process))
        fault = (
            f"A worker process could not start ({ending}). "
            'In a script, start the work under `if __name__ == "__main__":`, or use one worker.'
        )
        return self._replace(worker, ending, fault)


def start_pool(workers: Workers, setup: WorkerSetup[Task, Result]) -> WorkerPool[Task, Result]:
    """Return the pool that some workers are: this process, so many others, or whom else they stand for."""
    if not isinstance(workers, int):
        return workers(setup)
    return Serial(setup) if workers == 1 else Processes(workers, setup)


def _start_process(setup: WorkerSetup[Any, Any]) -> _Worker:
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=_work, args=(there, setup), name="leaktight-worker", daemon=True)
    with _ignore_interrupts():
        process.start()
    there.close()
    return _Worker(process, here)


@contextmanager
def _ignore_interrupts() -> Iterator[None]:
    """Ignore Ctrl-C in the block.

    A process started in it ignores Ctrl-C from its first moment, before any of its code runs.
    """
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


def _describe_exit(code: int | None) -> str:
    if code is not None and code < 0:
        return f"signal {signal.Signals(-code).name}"
    return f"exit code {code}"


def _work(connection: Connection, setup: WorkerSetup[Any, Any]) -> None:
    """Do tasks until the pipe closes: what runs in a worker process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    torch.set_num_threads(1)
    function = setup.make(Folder(setup.folder), setup.options)
    connection.send_bytes(_READY)

    def advance(done: int, total: int) -> None:
        connection.send_bytes(b"%s %d %d" % (_ADVANCE, done, total))

    while True:
        try:
            content = connection.recv_bytes()
        except EOFError:
            return
        parts = function.answer(content, advance)
        connection.send_bytes(b"%s %d" % (_DONE, len(parts)))
        for part in parts:
            connection.send_bytes(part)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
