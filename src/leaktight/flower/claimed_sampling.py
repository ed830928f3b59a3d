"""Claimed sampling: what a user says about how their own loader chooses the examples of a batch."""

from __future__ import annotations

import dataclasses
from typing import Literal, get_args

from leaktight.core.errors import InvalidValue
from leaktight.core.sampling import Piece, Poisson, Sampling

LoaderSampling = Literal["unknown", "passes", "poisson"]


@dataclasses.dataclass
class ClaimedSampling:
    """How a user's own loader samples, by their word, as far as an account of privacy may rely on it.

    Args:
        sampling: how it chooses the examples of a batch; see `defend_training`.
        examples: how many there are.
        batch_size: the expected size of a batch under `poisson`.

    Example:
        >>> sampling = ClaimedSampling("passes", examples=6)
        >>> [sampling.next(size).first for size in (4, 2, 4, 2)]
        [True, False, True, False]
    """

    sampling: LoaderSampling
    examples: int
    batch_size: int | None = None
    _largest: int = dataclasses.field(default=0, init=False)
    _passed: int = dataclasses.field(default=0, init=False)

    def __post_init__(self) -> None:
        if self.sampling not in get_args(LoaderSampling):
            raise InvalidValue(
                f"The `sampling` of a defended training run must be one of {', '.join(get_args(LoaderSampling))}. "
                f"Got {self.sampling!r} instead."
            )
        if self.sampling == "poisson" and not (self.batch_size and 0 < self.batch_size <= self.examples):
            raise InvalidValue(
                f"Poisson sampling needs its expected `batch_size`, from 1 to the {self.examples} examples. "
                f"Got {self.batch_size} instead."
            )
        if self.sampling != "poisson" and self.batch_size is not None:
            raise InvalidValue(
                f"The `batch_size` is for `sampling` by poisson alone. "
                f"Got {self.batch_size} with {self.sampling}; leave it out."
            )

    def next(self, size: int) -> Sampling | None:
        """Return how the next batch, of this size, was chosen; None if nothing is known."""
        if self.batch_size is not None:
            return Poisson(self.batch_size / self.examples, self.batch_size)
        if self.sampling == "unknown":
            return None
        # A loader may leave out what does not fill a batch, so a pass may be over as soon as no full batch fits in any
        # more. Only the rest that completes the data still belongs to it.
        over = self._passed + self._largest > self.examples and self._passed + size != self.examples
        first = not self._largest or over
        self._largest = max(self._largest, size)
        self._passed = size if first else self._passed + size
        return Piece(first)
