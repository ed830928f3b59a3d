"""Who scores: this process, or several with one torch thread each. The answers are the same to the last bit."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

import torch

from leaktight.core.archive import unpack
from leaktight.core.errors import LeaktightError
from leaktight.search.job import Job
from leaktight.search.journal import Answer
from leaktight.search.material import material
from leaktight.search.scorer import Scorer
from leaktight.search.settings import Search

_mine: list[Scorer] = []


class Engine(Protocol):
    """Answers jobs, in any order."""

    def answers(self, jobs: Sequence[Job]) -> Iterator[tuple[Job, Answer]]:
        """Return each job with its answer, as soon as it is there."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Stop what was started."""


class InProcess:
    """Scores in this process.

    Args:
        scorer: what answers.
    """

    def __init__(self, scorer: Scorer) -> None:
        self._scorer = scorer

    def answers(self, jobs: Sequence[Job]) -> Iterator[tuple[Job, Answer]]:
        """Answer one job after the other."""
        for job in jobs:
            yield job, self._scorer.answer(job)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Leave nothing behind."""


class Processes:
    """Scores in worker processes, each with a scorer of its own.

    They are started afresh (not forked), ignore Ctrl-C (the search ends them) and end themselves when the search's process is gone.

    Args:
        workers: how many, at least 1.
        search: the settings.
        model: the file with the parameters of the model that was trained a little.
    """

    def __init__(self, workers: int, search: Search, model: Path) -> None:
        context = multiprocessing.get_context("spawn")
        self._pool = ProcessPoolExecutor(workers, context, _begin, (search.to_dict(), str(model)))

    def answers(self, jobs: Sequence[Job]) -> Iterator[tuple[Job, Answer]]:
        """Deal jobs out; neighbours, which share functions, are answered soon after each other."""
        asked: dict[Future[Answer], Job] = {}
        try:
            with _deaf_to_interrupts():
                asked = {self._pool.submit(_answer, job): job for job in jobs}
            for done in as_completed(asked):
                yield asked[done], done.result()
        except BrokenProcessPool:
            raise LeaktightError(
                "A worker process of the search died. Finished scores are kept; if memory is short, go on with fewer workers. "
                'In a script, start the search under `if __name__ == "__main__":`.'
            ) from None
        finally:
            for one in asked:
                one.cancel()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """End the workers, after the job that each is at."""
        self._pool.shutdown(wait=True, cancel_futures=True)


def scorer_of(search: Search, model: Path) -> Scorer:
    """Return the scorer of a search, with the trained parameters that a file holds."""
    values, _ = unpack(model.read_bytes())
    return Scorer(search, material(search), {name: value for name, value in values.items() if isinstance(value, torch.Tensor)})


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Let torch use one thread in the block: a sum split over threads rounds differently."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _begin(search: dict[str, Any], model: str) -> None:
    """Make a worker process ready."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    torch.set_num_threads(1)
    _mine[:] = [scorer_of(Search.model_validate(search), Path(model))]


def _answer(job: Job) -> Answer:
    return _mine[0].answer(job)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


@contextlib.contextmanager
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
