"""Local: what one party holds and never sends."""

from __future__ import annotations

import dataclasses
from typing import Any

from leaktight.core.random import Stream, stream
from leaktight.core.task import Batch

Memory = dict[str, Any]


@dataclasses.dataclass
class Local:
    """A party's own random stream, current batch, memory and notes.

    Private heads, class keys, targets and residuals live in `memory` and nowhere else. It holds tensors, numbers and
    nested dictionaries of them, so that an engine whose processes come and go can keep it for the party.

    Args:
        party: whose it is.
        seed: what its random streams derive from.
        examples: how many examples the party owns.
        batch: the batch that the current message is made from, as used.
        memory: what defences keep between messages.
        notes: numbers for the record (an epsilon, a clipped share); the owner decides what becomes of them.
        round: the current round; -1 before the first.
        path: the scopes that lead here from the party's root.
    """

    party: str
    seed: int
    examples: int = 0
    batch: Batch | None = None
    memory: Memory = dataclasses.field(default_factory=dict)
    notes: dict[str, float] = dataclasses.field(default_factory=dict)
    round: int = -1
    path: tuple[str, ...] = ()
    _streams: dict[tuple[str, ...], Stream] = dataclasses.field(default_factory=dict, repr=False)

    def begin(self, round: int) -> None:
        """Enter a round: every stream starts anew from the seed, the party and the round."""
        self.round = round
        self._streams.clear()

    def scope(self, name: str) -> Local:
        """Return this party's Local for one part: memory and random stream of its own, the rest shared."""
        return dataclasses.replace(self, memory=self.memory.setdefault(name, {}), path=(*self.path, name))

    @property
    def rng(self) -> Stream:
        """The random stream of this scope and round."""
        if self.path not in self._streams:
            self._streams[self.path] = stream(self.seed, self.party, self.round, *self.path)
        return self._streams[self.path]
