"""Trials: a model is trained briefly with each of the most private candidates, which measures what is wanted."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from torch import Tensor

from leaktight.search.candidates import CandidatePolicy, Indices, choose
from leaktight.search.measurement import Measurement
from leaktight.search.settings import Search
from leaktight.statistics.interval import Interval
from leaktight.statistics.paired import paired_difference

GROUPS = 4
"""How many groups of candidates are tried before fewer than asked for are chosen."""


@dataclasses.dataclass(frozen=True)
class BriefTraining:
    """What a model learned from changed images in a brief training run.

    Args:
        accuracy: its accuracy on images as they are, which were held out.
        cost: how much less that is than that of a model trained without a change; None for the latter.
        interval: the 95 % interval of the cost, over the same images.
    """

    accuracy: float
    cost: float | None
    interval: Interval = (None, None)


def choose_by_trial(
    search: Search, ranked: Sequence[CandidatePolicy], measure: Measurement
) -> tuple[tuple[CandidatePolicy, ...], dict[Indices, BriefTraining]]:
    """Return the most private candidates that keep the accuracy and share no function, and all trials.

    Candidates are tried in groups, the most private first, until enough of them can be chosen; after four groups fewer
    come back. Without trials the most private ones are chosen.

    Args:
        search: the settings; `policies`, `trained` and `loss` count.
        ranked: the candidates, the most private first.
        measure: trains.
    """
    if not search.trained or not ranked:
        return choose(ranked, search.policies), {}
    nothing: Indices = ()
    [plain] = measure.learn([nothing])
    trials = {nothing: BriefTraining(plain.mean().item(), None)}
    best: tuple[CandidatePolicy, ...] = ()
    for start in range(0, min(len(ranked), GROUPS * search.trained), search.trained):
        group = ranked[start : start + search.trained]
        for one, hits in zip(group, measure.learn([one.acts for one in group]), strict=True):
            trials[one.acts] = _compare(plain, hits)
        kept = [one for one in ranked if _is_affordable(trials.get(one.acts), search.loss)]
        best = choose(kept, search.policies)
        if len(best) == search.policies:
            break
    return best, trials


def _compare(plain: Tensor, hits: Tensor) -> BriefTraining:
    cost, interval = paired_difference(plain, hits)
    return BriefTraining(hits.mean().item(), cost, interval)


def _is_affordable(trial: BriefTraining | None, loss: float) -> bool:
    return trial is not None and trial.cost is not None and trial.cost <= loss
