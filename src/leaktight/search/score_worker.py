"""The worker of a search: scores a policy, in this process or another. The scores are the same to the last bit."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from leaktight.core.archive import unpack
from leaktight.core.errors import LeaktightError
from leaktight.core.scenario import Progress
from leaktight.running.audit_worker import classify_error
from leaktight.running.file_cache import FileCache
from leaktight.running.worker_pool import WorkerSetup
from leaktight.search.material import material
from leaktight.search.score_task import ImageScores, ScoreTask
from leaktight.search.scorer import Scorer
from leaktight.search.settings import Search


class ScoreWorker:
    """The worker function of a search.

    Args:
        scorer: what scores.
    """

    def __init__(self, scorer: Scorer) -> None:
        self._scorer = scorer

    def __call__(self, task: ScoreTask, progress: Progress | None = None) -> ImageScores:
        """Do a task."""
        return self._scorer.score(task)

    def answer(self, content: bytes, progress: Progress | None = None) -> list[bytes]:
        """Do an encoded task; return its scores as JSON."""
        try:
            spec: dict[str, Any] = {"scores": self(ScoreTask.from_bytes(content))}
        # As an audit's worker does: what goes wrong is said to whoever asked, with the place for what nobody foresaw.
        except Exception as error:
            spec = {"reason": classify_error(error)[1]}
        return [json.dumps(spec).encode()]


def search_setup(search: Search, model: Path) -> WorkerSetup[ScoreTask, ImageScores]:
    """Return the setup of a search's workers.

    Args:
        search: the settings.
        model: the file with the parameters of the model that was trained a little.
    """
    return WorkerSetup(_make_worker, model.parent, {"search": search.to_dict(), "model": model.name}, (model.name,))


def load_scorer(search: Search, cache: FileCache, name: str) -> Scorer:
    """Return the scorer of a search, with the trained parameters that a file holds."""
    content = cache.read(name)
    if content is None:
        raise LeaktightError(f"The model `{name}` of the search is not in its folder. Run the search again to make it.")
    values, _ = unpack(content)
    return Scorer(
        search, material(search), {name: value for name, value in values.items() if isinstance(value, torch.Tensor)}
    )


def _make_worker(cache: FileCache, options: Mapping[str, Any]) -> ScoreWorker:
    return ScoreWorker(load_scorer(Search.model_validate(options["search"]), cache, options["model"]))
