"""Measurements: scores of candidates, from the journal if they are there, from an engine if not."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from leaktight.running.scheduler import Step
from leaktight.search.candidates import Candidate, Indices
from leaktight.search.journal import Journal
from leaktight.search.score_task import ScoreTask, blocks
from leaktight.search.scoring import Backend

Progress = Callable[[Step], None]


class Measurement:
    """Scores candidates, writes down what is new and says how far it is.

    Args:
        engine: who answers.
        journal: what is known, and where answers are written down.
        images: how many images there are.
        progress: told after each answer.

    `image_scores` counts the privacy scores of single images that were asked for, kept ones too.
    """

    def __init__(self, engine: Backend, journal: Journal, images: int, progress: Progress | None = None) -> None:
        self._engine, self._journal, self._images, self._progress = engine, journal, images, progress
        self._kept = len(journal.known)
        self._done = 0
        self.image_scores = 0

    def privacy(self, candidates: Sequence[Candidate], start: int, stop: int) -> dict[Candidate, Tensor]:
        """Return the privacy scores of candidates on some of the images, all of one of the `blocks`."""
        text = f"privacy of {len(candidates)} policies, images {start + 1} to {stop} of {self._images}"
        self.image_scores += len(candidates) * (stop - start)
        self._answer(
            [ScoreTask("privacy", start, stop, one.acts) for one in candidates], text, self._later(len(candidates), stop)
        )
        return {one: self._known(ScoreTask("privacy", start, stop, one.acts)) for one in candidates}

    def accuracy(self, candidates: Sequence[Candidate]) -> list[float]:
        """Return the accuracy score of each candidate."""
        jobs = [ScoreTask("accuracy", 0, self._images, one.acts) for one in candidates]
        self._answer(jobs, f"accuracy of {len(candidates)} policies", self._later(len(candidates), 0))
        return [self._known(job).item() for job in jobs]

    def untransformed(self) -> tuple[Tensor, float]:
        """Return the privacy score of each image as it is, and the accuracy score of all."""
        nothing: Indices = ()
        jobs = [ScoreTask("privacy", start, stop, nothing) for start, stop in blocks(self._images)]
        whole = ScoreTask("accuracy", 0, self._images, nothing)
        self._answer([*jobs, whole], "images as they are", 0)
        return torch.cat([self._known(job) for job in jobs]), self._known(whole).item()

    def _known(self, job: ScoreTask) -> Tensor:
        return torch.tensor(self._journal.known[job], dtype=torch.float64)

    def _later(self, candidates: int, stop: int) -> int:
        """Return how many jobs are left at most when images up to one are scored."""
        return candidates * sum(start >= stop for start, _ in blocks(self._images))

    def _answer(self, jobs: Sequence[ScoreTask], text: str, later: int) -> None:
        missing = sorted({job for job in jobs if job not in self._journal.known})
        total = self._done + len(missing) + later
        kept = f" ({self._kept} scores kept)" if self._kept else ""
        for job, answer in self._engine.answers(missing):
            self._journal.add(job, answer)
            self._done += 1
            if self._progress is not None:
                self._progress(Step(self._done, total, 0, text + kept, None))
