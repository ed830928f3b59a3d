"""A search from start to end: train a little, draw candidates, drop what hurts accuracy, score privacy, choose."""

from __future__ import annotations

import contextlib
import dataclasses
import logging
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from leaktight.core.archive import pack, read_archive
from leaktight.core.digest import digest_archive
from leaktight.core.errors import InvalidValue, LeaktightError
from leaktight.core.private import check_writable, private_folder, write_private
from leaktight.core.random import stream
from leaktight.core.threads import one_thread
from leaktight.data import Factory
from leaktight.running.fingerprint import Fingerprint, Fingerprints
from leaktight.running.processes import start_pool
from leaktight.running.scheduler import Step
from leaktight.running.store import lock_file
from leaktight.running.worker_pool import Workers
from leaktight.search.candidates import CandidatePolicy, Indices, choose, draw_candidates
from leaktight.search.journal import Journal
from leaktight.search.material import material, semi_train
from leaktight.search.measurement import Measurement, Progress
from leaktight.search.policy_file import write_policy
from leaktight.search.racing import Scores, by_mean, exhaust, race
from leaktight.search.result import Result, Scored
from leaktight.search.score_worker import search_setup
from leaktight.search.settings import Search
from leaktight.search.trial import BriefTraining, choose_by_trial
from leaktight.search.validity import doubts
from leaktight.statistics.interval import bootstrap

KEPT, JOURNAL, MODEL, LOCK = ".search", "journal.jsonl", "model.safetensors", "search.lock"
DRAWS = 10
"""How often as many candidates are drawn again before a search gives up."""
_log = logging.getLogger(__name__)
_CHOICE = ("candidates", "functions", "policies", "threshold", "method", "library", "trained", "loss")


def search(settings: Search, out: str | Path, workers: Workers = 1, progress: Progress | None = None) -> Result:
    """Search for a policy and write it to a file.

    Finished scores and the trained model are kept in a folder beside the file, `policy.search` for `policy.toml`; the
    same search resumes from there after an interruption, and one with more candidates or another threshold uses what is
    there too. The result is the same for any number of workers.

    Args:
        settings: what is searched.
        out: the file for the policy.
        workers: how many processes, at least 1, each with one torch thread; 1 is this process. Or who else scores: a
            `Cluster` of Ray.
        progress: called with how far the search is.
    """
    if isinstance(workers, int) and workers < 1:
        raise InvalidValue(f"The `workers` of a search must be at least 1. Got {workers} instead.")
    path = Path(out)
    check_writable(path)
    folder = path.with_suffix(KEPT)
    if folder == path:
        raise InvalidValue(
            f"The file for the policy must not end in `{KEPT}`, as the folder beside it does. Got `{path}` instead."
        )
    Factory.start_run()
    with one_thread(), contextlib.ExitStack() as stack:
        material(settings)  # what is wrong with the data is said before the long part
        key, fingerprint = _scoring_settings(settings).key, _fingerprint(settings)
        private_folder(folder)
        stack.enter_context(contextlib.closing(lock_file(folder / LOCK)))
        _train(settings, folder / MODEL, f"{key}-{fingerprint.digest}", progress)
        journal = stack.enter_context(Journal(folder / JOURNAL, key, fingerprint))
        pool = stack.enter_context(start_pool(workers, search_setup(settings, folder / MODEL)))
        result = _choose(settings, Measurement(pool, journal, settings.images, progress))
    write_policy(path, result)
    return result


def _scoring_settings(settings: Search) -> Search:
    """Return the settings that decide scores: data, network and how they are measured, not what is chosen from."""
    return Search.model_validate({name: value for name, value in settings.to_dict().items() if name not in _CHOICE})


def _fingerprint(settings: Search) -> Fingerprint:
    """Return what else scores are made from."""
    through = ("leaktight.search.material", "leaktight.search.scorer")
    return Fingerprints().of(settings.scenario(), settings.seed, settings.optimiser, through=through)


def _train(settings: Search, path: Path, fingerprint: str, progress: Progress | None) -> None:
    """Make sure that the model that is trained a little is in its file."""
    if path.exists() and _is_trained(path, fingerprint):
        return
    task = material(settings).task

    def advance(done: int, total: int) -> None:
        if progress is not None:
            progress(Step(done, total, 0, "training a little", None))

    parameters = semi_train(settings, task, advance)
    about = {"fingerprint": fingerprint}
    write_private(path, pack(parameters, {**about, "checksum": digest_archive(parameters, about)}))


def _is_trained(path: Path, fingerprint: str) -> bool:
    """Return whether a file holds the model that was made from this; a damaged one is named."""
    try:
        values, about = read_archive(path)
        checksum = about.pop("checksum", "")
        if checksum == digest_archive(values, about):
            return bool(about["fingerprint"] == fingerprint)
    except (LeaktightError, OSError):
        pass
    _log.warning("The model `%s` is damaged and is computed again.", path)
    return False


def _choose(settings: Search, measure: Measurement) -> Result:
    """Draw candidates until enough can be chosen, and return the choice."""
    plain, batches = measure.score_plain()
    base = batches.mean().item()
    candidates: dict[Indices, CandidatePolicy] = {}
    best: tuple[CandidatePolicy, ...] = ()
    trials: dict[Indices, BriefTraining] = {}
    for number in range(DRAWS):
        rng = stream(settings.seed, "search", "candidates", number)
        for one in draw_candidates(settings.candidates, settings.library, settings.functions, rng):
            candidates.setdefault(one.acts, one)
        accuracy = dict(zip(candidates.values(), measure.accuracy(list(candidates.values())), strict=True))
        # Scores are negative.
        passed = [one for one, score in accuracy.items() if score >= settings.threshold * base]
        if len(choose(passed, settings.policies)) < settings.policies and number < DRAWS - 1:
            continue
        scores = _scores(settings, passed, measure)
        # What scores no better than no change is never chosen.
        ranked = [one for one in by_mean(scores) if scores[one].mean() < plain.mean()]
        best, trials = choose_by_trial(settings, ranked, measure)
        if len(best) == settings.policies or (settings.trained and best):
            break
    if not best:
        raise InvalidValue(
            f"None of {settings.candidates * DRAWS} candidates has a better privacy score than images as they are, an "
            f"accuracy score of at least {settings.threshold * base:.4g}{_cost_clause(settings)}. Raise the threshold"
            f"{' or the loss' if settings.trained else ''}, or train on images as they are."
        )
    return Result(
        search=settings,
        chosen=tuple(_score(settings, str(one), scores[one], accuracy[one], trials.get(one.acts)) for one in best),
        untransformed=_score(settings, "", plain, base, trials.get(())),
        candidates=settings.candidates * (number + 1),
        distinct=len(candidates),
        passed=len(passed),
        finalists=len(scores),
        image_scores=measure.image_scores,
        tried=max(0, len(trials) - 1),
        doubts=tuple(doubts(batches, list(accuracy.values()), settings.threshold)),
    )


def _cost_clause(settings: Search) -> str:
    return f", and costs at most {settings.loss:.0%} of accuracy in brief training" if settings.trained else ""


def _scores(settings: Search, passed: Sequence[CandidatePolicy], measure: Measurement) -> Scores:
    if not passed:
        return {}
    if settings.method == "random":
        return exhaust(passed, settings.images, measure.privacy)
    return race(passed, settings.policies, settings.images, measure.privacy, settings.trained)


def _score(settings: Search, policy: str, each: Tensor, accuracy: float, trial: BriefTraining | None) -> Scored:
    interval = bootstrap(each, stream(settings.seed, "search", "interval", policy))
    scored = Scored(policy, torch.mean(each).item(), interval, accuracy)
    if trial is None:
        return scored
    return dataclasses.replace(scored, learned=trial.accuracy, cost=trial.cost, cost_interval=trial.interval)
