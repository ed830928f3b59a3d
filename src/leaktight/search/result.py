"""The result of a search: the chosen policies with their scores, beside those of untransformed images."""

from __future__ import annotations

import dataclasses

from leaktight.search.settings import Search
from leaktight.statistics.interval import Interval
from leaktight.transforms.policy import Policy


@dataclasses.dataclass(frozen=True)
class Scored:
    """One policy, or none, and its scores.

    Args:
        policy: as text; empty for images as they are.
        privacy: the mean privacy score over images; lower is more private.
        interval: its 95 % interval over images.
        accuracy: the accuracy score; higher is better, and -1 is the most.
        learned: the accuracy of a model after brief training with it; None if there was none.
        cost: how much less that is than without a change.
        cost_interval: its 95 % interval over images, the same ones for both models.
    """

    policy: str
    privacy: float
    interval: Interval
    accuracy: float
    learned: float | None = None
    cost: float | None = None
    cost_interval: Interval = (None, None)


@dataclasses.dataclass(frozen=True)
class Result:
    """What a search found.

    Args:
        search: the settings.
        chosen: the policies, most private first.
        untransformed: the scores of images as they are.
        candidates: how many policies were drawn.
        distinct: how many of them do different things.
        passed: how many of those were good enough in accuracy.
        finalists: how many of those were scored on all images.
        image_scores: how many privacy scores of single images it took.
        tried: how many candidates a model was trained with.
        doubts: why the accuracy score says little here, a sentence each; none if nothing speaks against it.
    """

    search: Search
    chosen: tuple[Scored, ...]
    untransformed: Scored
    candidates: int
    distinct: int
    passed: int
    finalists: int
    image_scores: int
    tried: int = 0
    doubts: tuple[str, ...] = ()

    @property
    def policy(self) -> Policy:
        """The chosen policies as one: each image goes through one of them, drawn at random."""
        return Policy.of("+".join(one.policy for one in self.chosen))

    @property
    def privacy(self) -> float:
        """The mean privacy score of the chosen policies."""
        return sum(one.privacy for one in self.chosen) / len(self.chosen)
