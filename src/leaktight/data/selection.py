"""Selections: which examples make a small set or a test part.

Nothing is drawn anew: the same labels always give the same choice.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from leaktight.core.errors import InvalidValue
from leaktight.core.random import stream

Labels = NDArray[Any]
Index = NDArray[np.int64]


def _places(labels: Labels) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return each example's place in its class after one fixed shuffle, evenly in (0, 1), and whether it is last."""
    shuffled = torch.randperm(len(labels), generator=stream(0, "data", "selection")).numpy()
    _, codes, counts = np.unique(labels, return_inverse=True, return_counts=True)
    order = shuffled[np.argsort(codes[shuffled], kind="stable")]
    sizes = np.repeat(counts, counts)
    ranks = np.arange(len(labels)) - np.repeat(np.cumsum(counts) - counts, counts)
    places, last = np.empty(len(labels)), np.empty(len(labels), dtype=np.bool_)
    places[order] = (ranks + 0.5) / sizes
    last[order] = ranks == sizes - 1
    return places, last


def subset(labels: Labels, count: int | None) -> Index:
    """Return the positions of at most `count` examples, each class in its share, in their first order.

    A smaller subset is contained in a larger one, so that results at two sizes can be compared.

    Args:
        labels: each example's class.
        count: how many to keep, from 1; None keeps all.

    Example:
        >>> labels = np.array([0] * 60 + [1] * 30)
        >>> np.bincount(labels[subset(labels, 9)]).tolist()
        [6, 3]
    """
    if count is None or count >= len(labels):
        return np.arange(len(labels))
    places, _ = _places(labels)
    return np.sort(np.argsort(places, kind="stable")[:count])


def holdout(labels: Labels, share: float) -> tuple[Index, Index]:
    """Return the positions of a training and a test part, each class in its share.

    Every class stays in the training part.

    Args:
        labels: each example's class.
        share: what part of the examples is held out for testing, in (0, 1).

    Example:
        >>> train, test = holdout(np.array([0, 1] * 10), share=0.2)
        >>> len(train), len(test)
        (16, 4)
    """
    places, last = _places(labels)
    count = min(max(1, round(share * len(labels))), int((~last).sum()))
    if count < 1:
        raise InvalidValue(
            "A set that is to be split into training and test data must have two examples of some class. Got "
            f"{len(labels)} examples, each of its own class."
        )
    # The last of each class comes after everything else, so it is never held out.
    order = np.lexsort((places, last))
    return np.sort(order[count:]), np.sort(order[:count])
