"""Exhaustive scoring: every candidate on every image, as published."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from leaktight.search.candidates import Candidate
from leaktight.search.racing import Privacy, Scores
from leaktight.search.score_task import blocks


def exhaust(candidates: Sequence[Candidate], images: int, privacy: Privacy) -> Scores:
    """Return the scores of all candidates on all images.

    Args:
        candidates: the policies, all of them good enough in accuracy.
        images: how many images there are.
        privacy: scores candidates on some of the images.

    Example:
        >>> from leaktight.search.candidates import candidate
        >>> def privacy(some, start, stop):
        ...     return {one: torch.zeros(stop - start) for one in some}
        >>> found = exhaust([candidate("3")], 16, privacy)
        >>> {str(one): tuple(scores.shape) for one, scores in found.items()}
        {'3': (16,)}

    Differs from the paper: Algorithm 1 takes the first n qualified policies unscored and replaces the worst of the set
    one by one; all are scored here, ranked, and the best that share no function are taken, which depends on no order.

    References:
        Gao et al., Privacy-preserving Collaborative Learning with Automatic Transformation Search, 2021, Algorithm 1.
    """
    parts = [privacy(candidates, start, stop) for start, stop in blocks(images)]
    return {one: torch.cat([part[one] for part in parts]).double() for one in candidates}
