"""The searches: every subject's policies are found before anything is planned with them."""

from __future__ import annotations

from pathlib import Path

from leaktight.core.private import private_folder
from leaktight.papers.reproduction import with_label
from leaktight.papers.transformation_search.scales import Study, Subject, score_network
from leaktight.running.scheduler import Progress
from leaktight.running.worker_pool import Workers
from leaktight.search import Search, search
from leaktight.search.run import KEPT, MODEL

SEARCH, FILE = "search", "policy.toml"


def prepare(setup: Study, folder: Path, workers: Workers = 1, progress: Progress | None = None) -> Study:
    """Search the policies of every subject, each in a folder of its own, and return the study that knows them.

    It also knows the model that was semi-trained for the focus. What a search has done is kept there, so that it is not
    done again.
    """
    hybrids, models = {}, {}
    for number, subject in enumerate(setup.subjects, start=1):
        name = f"{subject.name}-{SEARCH}"
        part = progress and with_label(progress, f"{name} ({number} of {len(setup.subjects)})")
        place = private_folder(folder / name)
        hybrids[subject.name] = search(make_search(setup, subject), place / FILE, workers, part).policy
        models[subject.name] = str(((place / FILE).with_suffix(KEPT) / MODEL).absolute())
    return setup.model_copy(update={"hybrids": hybrids, "semi_trained": models[setup.explained]})


def make_search(study: Study, subject: Subject) -> Search:
    """Return the settings of a subject's search: two policies of at most three functions, on its own network."""
    size = study.search
    return Search(
        data=subject.data,
        model=score_network(subject.model),
        candidates=size.candidates,
        images=size.images,
        epochs=size.epochs,
        method=size.method,
        batches=size.batches,
        # Algorithm 1 chooses by scores alone.
        trained=0,
        seed=study.seed,
        device=study.device,
    )
