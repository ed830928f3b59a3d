"""The searches: every subject's policies are found before anything is planned with them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

from leaktight.core.private import private_folder
from leaktight.papers.transformation_search.plans import Found, folder
from leaktight.papers.transformation_search.settings import Study, Subject
from leaktight.running.scheduler import Progress, Step
from leaktight.running.worker_pool import Workers
from leaktight.search import Search, search

SEARCH, FILE = "search", "policy.toml"


def searches(study: Study, out: Path, seed: int, workers: Workers = 1, progress: Progress | None = None) -> Found:
    """Search the policies of every subject, each in a folder of its own, and return the hybrids by the subject's name.

    What a search has done is kept there, so that it is not done again.
    """
    found = {}
    for number, subject in enumerate(study.subjects, start=1):
        part = f"{folder(subject, SEARCH)} ({number} of {len(study.subjects)})"
        place = private_folder(out / folder(subject, SEARCH))
        found[subject.name] = search(search_of(study, subject, seed), place / FILE, workers, _told(progress, part)).policy
    return found


def search_of(study: Study, subject: Subject, seed: int) -> Search:
    """Return the settings of a subject's search: two policies of at most three functions, on the network that will be trained."""
    size = study.search
    return Search(
        data=subject.data,
        model=subject.model,
        candidates=size.candidates,
        images=size.images,
        epochs=size.epochs,
        method=size.method,
        seed=seed,
        device=study.device,
    )


def _told(progress: Progress | None, part: str) -> Callable[[Step], None] | None:
    if progress is None:
        return None

    def step(step: Step) -> None:
        progress(dataclasses.replace(step, text=f"{part}: {step.text}"))

    return step
