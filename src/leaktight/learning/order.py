"""The order of examples that two parties agree on.

Which rows make the batch of a step follows from a public seed alone.
"""

from __future__ import annotations

import dataclasses

import torch
from torch import Tensor

from leaktight.core.errors import InvalidValue
from leaktight.core.random import stream


@dataclasses.dataclass
class BatchOrder:
    """Batches of consecutive rows, shuffled anew in every pass; what does not fill a batch is left out of that pass.

    Both parties hold rows of the same people in the same order (an aligned list of ids), so positions are all they have
    to agree on.

    Args:
        count: how many rows each party holds, at least `batch_size`.
        batch_size: rows per step, at least 1.
        seed: public; what the shuffles derive from.

    Example:
        >>> order = BatchOrder(count=5, batch_size=2, seed=0)
        >>> sorted(torch.cat([order.at(0), order.at(1)]).unique().tolist()) <= [0, 1, 2, 3, 4]
        True
    """

    count: int
    batch_size: int
    seed: int

    def __post_init__(self) -> None:
        if not 1 <= self.batch_size <= self.count:
            raise InvalidValue(
                f"The batch size must be from 1 to the {self.count} rows that the parties hold. Got {self.batch_size} "
                "instead."
            )
        self._pass = -1
        self._shuffled = torch.empty(0, dtype=torch.long)

    def at(self, step: int) -> Tensor:
        """Return the positions of a step's rows."""
        which, place = self.pass_of(step), step % (self.count // self.batch_size)
        if which != self._pass:
            self._pass = which
            self._shuffled = torch.randperm(self.count, generator=stream(self.seed, "split", "order", which))
        return self._shuffled[place * self.batch_size : (place + 1) * self.batch_size]

    def pass_of(self, step: int) -> int:
        """Return in which pass through the rows a step is, from 0."""
        return step // (self.count // self.batch_size)
