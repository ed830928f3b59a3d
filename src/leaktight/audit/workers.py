"""Worker processes: each with one torch thread, its own memory, and a pipe to the audit that started it."""

from __future__ import annotations

import dataclasses
import multiprocessing
import multiprocessing.connection
import os
import signal
import threading
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from pathlib import Path
from types import TracebackType
from typing import Self

import torch

from leaktight.audit.engine import Advance
from leaktight.audit.job import Job, Outcome, answer, without_record
from leaktight.audit.trainings import Trainings
from leaktight.core import registry
from leaktight.core.errors import LeaktightError
from leaktight.core.record import Status

ATTEMPTS = 2
"""How often a job is tried whose worker process dies."""

_READY, _ADVANCE = b"ready", b"advance"
_PATIENCE = 5.0


@dataclasses.dataclass
class _Worker:
    process: SpawnProcess
    connection: Connection
    ready: bool = False
    job: Job | None = None


class Processes:
    """Does jobs in worker processes.

    A process that dies costs its job another attempt in a fresh process; a job that takes its process down twice is
    failed. The processes are started afresh (not forked), speak JSON and safetensors, ignore Ctrl-C (the audit ends them)
    and end themselves when the audit's process is gone.

    Args:
        workers: how many processes, at least 1.
        folder: where trainings are kept.
    """

    def __init__(self, workers: int, folder: Path) -> None:
        self._folder = folder
        self._jobs: deque[Job] = deque()
        self._attempts: Counter[str] = Counter()
        self._workers: list[_Worker] = []
        self._size = workers

    def submit(self, job: Job) -> None:
        """Take a job."""
        self._jobs.append(job)
        self._deal()

    def next(self, advance: Advance) -> Outcome:
        """Wait for the first outcome of any worker."""
        while True:
            # Not before the last outcome was written: what is finished is then never more than one job behind for each worker.
            self._deal()
            outcome = self._heard(advance)
            if outcome is not None:
                return outcome

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
        self._jobs.clear()

    def _deal(self) -> None:
        """Give waiting jobs to idle workers; start as many workers as there is work for."""
        busy = sum(worker.job is not None for worker in self._workers)
        while len(self._workers) < min(self._size, busy + len(self._jobs)):
            self._workers.append(_started(self._folder))
        for worker in self._workers:
            if worker.job is None and worker.ready and self._jobs:
                self._give(worker, self._jobs.popleft())

    def _give(self, worker: _Worker, job: Job) -> None:
        worker.job = job
        try:
            worker.connection.send_bytes(job.encode())
        except OSError:
            # It died while it was idle: `_heard` will see its closed pipe and find it a successor.
            return

    def _heard(self, advance: Advance) -> Outcome | None:
        """Listen until a worker speaks or dies; return the outcome, if that is what it was."""
        spoken = multiprocessing.connection.wait([worker.connection for worker in self._workers])
        worker = next(worker for worker in self._workers if worker.connection in spoken)
        try:
            content = worker.connection.recv_bytes()
            if content == _READY:
                worker.ready = True
                return None
            if content.startswith(_ADVANCE):
                if worker.job is not None:
                    advance(worker.job, *map(int, content.split()[1:]))
                return None
            pictures = worker.connection.recv_bytes()
        except (EOFError, OSError):
            return self._buried(worker)
        job, worker.job = worker.job, None
        return Outcome.decode(job, content, pictures) if job is not None else None

    def _buried(self, worker: _Worker) -> Outcome | None:
        """Remove a dead worker; its job goes back to the front of the queue, or is failed."""
        self._workers.remove(worker)
        worker.connection.close()
        code = _reap(worker.process)
        if not worker.ready:
            raise LeaktightError(
                f"A worker process could not start ({_ended(code)}). "
                'In a script, start the audit under `if __name__ == "__main__":`, or use one worker.'
            )
        if worker.job is None:
            return None
        self._attempts[worker.job.key] += 1
        if self._attempts[worker.job.key] < ATTEMPTS:
            self._jobs.appendleft(worker.job)
            return None
        text = f"The worker process died {ATTEMPTS} times ({_ended(code)}). If memory is short, use fewer workers or fewer victims."
        return without_record(worker.job, Status.FAILED, text)


def _started(folder: Path) -> _Worker:
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=_work, args=(there, folder), name="leaktight-worker", daemon=True)
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


def _work(connection: Connection, folder: Path) -> None:
    """Do jobs until the pipe closes: what runs in a worker process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    torch.set_num_threads(1)
    registry.load()
    trainings = Trainings(folder)
    connection.send_bytes(_READY)

    def advance(done: int, total: int) -> None:
        connection.send_bytes(b"%s %d %d" % (_ADVANCE, done, total))

    while True:
        try:
            content = connection.recv_bytes()
        except EOFError:
            return
        for part in answer(content, trainings, advance):
            connection.send_bytes(part)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
