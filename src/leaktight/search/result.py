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
    """

    policy: str
    privacy: float
    interval: Interval
    accuracy: float


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
    """

    search: Search
    chosen: tuple[Scored, ...]
    untransformed: Scored
    candidates: int
    distinct: int
    passed: int
    finalists: int
    image_scores: int

    @property
    def policy(self) -> Policy:
        """The chosen policies as one: each image goes through one of them, drawn at random."""
        return Policy.of("+".join(one.policy for one in self.chosen))

    @property
    def privacy(self) -> float:
        """The mean privacy score of the chosen policies."""
        return sum(one.privacy for one in self.chosen) / len(self.chosen)
