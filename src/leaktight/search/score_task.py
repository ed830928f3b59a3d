"""Tasks of a search: the pieces that it is cut into, the same ones for every method and any number of workers."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from typing import ClassVar, Literal

from leaktight.core.errors import LeaktightError
from leaktight.search.candidates import Indices

ImageScores = tuple[float, ...]
What = Literal["privacy", "accuracy", "training"]
FIRST, LARGEST = 8, 32


@dataclasses.dataclass(frozen=True, order=True)
class ScoreTask:
    """A policy to score on some of the images.

    Args:
        what: `privacy` gives a score for each image, `accuracy` one for each batch, `training` 1 for each image that a
            model which learned from changed images tells right, else 0.
        start: the first image.
        stop: the image after the last.
        acts: the policy in its canonical form; empty for images as they are.
    """

    what: What
    start: int
    stop: int
    acts: Indices
    needs: ClassVar[tuple[str, ...]] = ()
    makes: ClassVar[tuple[str, ...]] = ()

    @property
    def name(self) -> str:
        """All of it as JSON."""
        return json.dumps({"what": self.what, "start": self.start, "stop": self.stop, "acts": self.acts})

    def encode(self) -> bytes:
        """Return what a worker has to be told."""
        return self.name.encode()

    @staticmethod
    def from_bytes(content: bytes) -> ScoreTask:
        """Undo `encode`."""
        spec = json.loads(content)
        return ScoreTask(spec["what"], spec["start"], spec["stop"], tuple(spec["acts"]))

    def decode(self, parts: Sequence[bytes]) -> ImageScores:
        """Return the scores that a worker answered with.

        Raises:
            LeaktightError: it gave a reason instead.
        """
        spec = json.loads(parts[0])
        if "reason" in spec:
            raise LeaktightError(spec["reason"])
        return tuple(spec["scores"])


def blocks(images: int) -> tuple[tuple[int, int], ...]:
    """Return the parts that images are scored in, each as its first and the one after its last.

    They hold few images at first, then more.

    Example:
        >>> blocks(100)
        ((0, 8), (8, 16), (16, 32), (32, 64), (64, 96), (96, 100))
    """
    ends = [FIRST]
    while ends[-1] < images:
        ends.append(ends[-1] + min(ends[-1], LARGEST))
    ends[-1] = images
    return tuple(zip([0, *ends], ends, strict=False))
