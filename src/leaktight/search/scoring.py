"""Who scores: this process, or a crew of workers with one torch thread each. The answers are the same to the last bit."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

import torch

from leaktight.core.archive import unpack
from leaktight.core.errors import LeaktightError
from leaktight.running.audit_task import verdict
from leaktight.running.file_cache import FileCache, Folder
from leaktight.running.worker_pool import PoolTask, WorkerFunction, WorkerPool, WorkerSetup
from leaktight.search.journal import Answer
from leaktight.search.material import material
from leaktight.search.score_task import ScoreTask
from leaktight.search.scorer import Scorer
from leaktight.search.settings import Search


class Backend(Protocol):
    """Answers jobs, in any order."""

    def answers(self, jobs: Sequence[ScoreTask]) -> Iterator[tuple[ScoreTask, Answer]]:
        """Return each job with its answer, as soon as it is there."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Stop what was started."""


class SerialBackend:
    """Scores in this process.

    Args:
        scorer: what answers.
    """

    def __init__(self, scorer: Scorer) -> None:
        self._scorer = scorer

    def answers(self, jobs: Sequence[ScoreTask]) -> Iterator[tuple[ScoreTask, Answer]]:
        """Answer one job after the other."""
        for job in jobs:
            yield job, self._scorer.answer(job)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Leave nothing behind."""


class PoolBackend:
    """Scores by a crew, each worker with a scorer of its own.

    Args:
        crew: who does the work; its work must be that of `work_of`.
    """

    def __init__(self, crew: WorkerPool) -> None:
        self._crew = crew

    def answers(self, jobs: Sequence[ScoreTask]) -> Iterator[tuple[ScoreTask, Answer]]:
        """Deal jobs out; neighbours, which share functions, are answered soon after each other."""
        out = {encode(job).decode(): job for job in jobs}
        for name in out:
            self._crew.submit(PoolTask(name, name.encode()))
        for _ in out:
            found = self._crew.next(lambda *_: None)
            if found.lost:
                raise LeaktightError(f"{found.lost} Finished scores are kept.")
            told = json.loads(found.parts[0])
            if "reason" in told:
                raise LeaktightError(told["reason"])
            yield out[found.name], tuple(told["scores"])

    def __enter__(self) -> Self:
        self._crew.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Stop the crew."""
        self._crew.__exit__(kind, error, trace)


def work_of(search: Search, model: Path) -> WorkerSetup:
    """Return the work of a search's workers.

    Args:
        search: the settings.
        model: the file with the parameters of the model that was trained a little.
    """
    return WorkerSetup(_hand, model.parent, {"search": search.to_dict(), "model": model.name}, (model.name,))


def _hand(shelf: FileCache, settings: Mapping[str, Any]) -> WorkerFunction:
    scorer = _scorer(Search.model_validate(settings["search"]), shelf, settings["model"])

    def score(content: bytes, progress: object) -> list[bytes]:
        try:
            told: dict[str, Any] = {"scores": scorer.answer(decode(content))}
        # As an audit's worker does: what goes wrong is said to whoever asked, with the place for what nobody foresaw.
        except Exception as error:
            told = {"reason": verdict(error)[1]}
        return [json.dumps(told).encode()]

    return score


def encode(job: ScoreTask) -> bytes:
    """Return a job as JSON."""
    return json.dumps({"what": job.what, "start": job.start, "stop": job.stop, "acts": job.acts}).encode()


def decode(content: bytes) -> ScoreTask:
    """Undo `encode`."""
    held = json.loads(content)
    return ScoreTask(held["what"], held["start"], held["stop"], tuple(held["acts"]))


def scorer_of(search: Search, model: Path) -> Scorer:
    """Return the scorer of a search, with the trained parameters that a file holds."""
    return _scorer(search, Folder(model.parent), model.name)


def _scorer(search: Search, shelf: FileCache, name: str) -> Scorer:
    content = shelf.read(name)
    if content is None:
        raise LeaktightError(f"The model `{name}` of the search is not in its folder. Run the search again to make it.")
    values, _ = unpack(content)
    return Scorer(search, material(search), {name: value for name, value in values.items() if isinstance(value, torch.Tensor)})
