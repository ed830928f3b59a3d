"""Measurements: scores of candidates, from the journal if they are there, from a pool of workers if not."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from leaktight.core.errors import LeaktightError
from leaktight.running.scheduler import Step
from leaktight.running.worker_pool import WorkerPool
from leaktight.search.candidates import CandidatePolicy, Indices
from leaktight.search.journal import Journal
from leaktight.search.score_task import ImageScores, ScoreTask, blocks

Progress = Callable[[Step], None]


class Measurement:
    """Scores candidates, writes down what is new and says how far it is.

    Args:
        pool: who scores; its setup must be that of `search_setup`.
        journal: what is known, and where scores are written down.
        images: how many images there are.
        progress: called after each task.

    `image_scores` counts the privacy scores of single images that were asked for, kept ones too.
    """

    def __init__(
        self,
        pool: WorkerPool[ScoreTask, ImageScores],
        journal: Journal,
        images: int,
        progress: Progress | None = None,
    ) -> None:
        self._pool, self._journal, self._images, self._progress = pool, journal, images, progress
        self._kept = len(journal.known)
        self._done = 0
        self.image_scores = 0

    def privacy(self, candidates: Sequence[CandidatePolicy], start: int, stop: int) -> dict[CandidatePolicy, Tensor]:
        """Return the privacy scores of candidates on some of the images, all of one of the `blocks`."""
        text = f"privacy of {len(candidates)} policies, images {start + 1} to {stop} of {self._images}"
        self.image_scores += len(candidates) * (stop - start)
        tasks = {candidate: ScoreTask("privacy", start, stop, candidate.acts) for candidate in candidates}
        self._score(list(tasks.values()), text, self._later(len(candidates), stop))
        return {candidate: self._read_scores(task) for candidate, task in tasks.items()}

    def accuracy(self, candidates: Sequence[CandidatePolicy]) -> list[float]:
        """Return the accuracy score of each candidate, the mean over batches."""
        tasks = [ScoreTask("accuracy", 0, self._images, candidate.acts) for candidate in candidates]
        self._score(tasks, f"accuracy of {len(candidates)} policies", self._later(len(candidates), 0))
        return [self._read_scores(task).mean().item() for task in tasks]

    def learn(self, acts: Sequence[Indices]) -> list[Tensor]:
        """Return for each policy which of the images that were held out a model tells right after brief training."""
        tasks = [ScoreTask("training", 0, self._images, each) for each in acts]
        self._score(tasks, f"brief training with {len(acts)} policies", 0)
        return [self._read_scores(task) for task in tasks]

    def score_plain(self) -> tuple[Tensor, Tensor]:
        """Return the privacy score of each image as it is, and the accuracy score of each batch."""
        nothing: Indices = ()
        parts = [ScoreTask("privacy", start, stop, nothing) for start, stop in blocks(self._images)]
        whole = ScoreTask("accuracy", 0, self._images, nothing)
        self._score([*parts, whole], "images as they are", 0)
        return torch.cat([self._read_scores(part) for part in parts]), self._read_scores(whole)

    def _read_scores(self, task: ScoreTask) -> Tensor:
        return torch.tensor(self._journal.known[task], dtype=torch.float64)

    def _later(self, candidates: int, stop: int) -> int:
        """Return how many tasks are left at most when images up to one are scored."""
        return candidates * sum(start >= stop for start, _ in blocks(self._images))

    def _score(self, tasks: Sequence[ScoreTask], text: str, later: int) -> None:
        # In order, so that neighbours, which share functions, are scored soon after each other.
        missing = sorted({task for task in tasks if task not in self._journal.known})
        total = self._done + len(missing) + later
        kept = f" ({self._kept} scores kept)" if self._kept else ""
        for task in missing:
            self._pool.submit(task)
        for _ in missing:
            result = self._pool.next(lambda *_: None)
            if result.value is None:
                raise LeaktightError(f"{result.lost} Finished scores are kept.")
            self._journal.add(result.task, result.value)
            self._done += 1
            if self._progress is not None:
                self._progress(Step(self._done, total, 0, text + kept, None))
