"""Jobs: the pieces that a search is cut into, the same ones for every method and any number of workers."""

from __future__ import annotations

import dataclasses
from typing import Literal

from leaktight.search.candidates import Indices

What = Literal["privacy", "accuracy"]
FIRST, LARGEST = 8, 32


@dataclasses.dataclass(frozen=True, order=True)
class ScoreTask:
    """A policy to score on some of the images.

    Args:
        what: `privacy` gives a score for each image, `accuracy` one for all.
        start: the first image.
        stop: the image after the last.
        acts: the policy in its canonical form; empty for images as they are.
    """

    what: What
    start: int
    stop: int
    acts: Indices


def blocks(images: int) -> tuple[tuple[int, int], ...]:
    """Return the parts that images are scored in, each as its first and the one after its last: few at first, then more.

    Example:
        >>> blocks(100)
        ((0, 8), (8, 16), (16, 32), (32, 64), (64, 96), (96, 100))
    """
    ends = [FIRST]
    while ends[-1] < images:
        ends.append(ends[-1] + min(ends[-1], LARGEST))
    ends[-1] = images
    return tuple(zip([0, *ends], ends, strict=False))
