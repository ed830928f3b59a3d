"""Local: what one party holds and never sends."""

from __future__ import annotations

import dataclasses
from typing import Any

from leaktight.core.random import Stream, stream
from leaktight.core.sampling import Sampling
from leaktight.core.task import Batch

Memory = dict[str, Any]


@dataclasses.dataclass
class Now:
    """Where a party is in a run; all scopes of a Local share it."""

    round: int = -1
    batch: Batch | None = None
    examples: int = 0
    classes: tuple[int, ...] = ()
    parts: tuple[str, ...] = ()
    sampling: Sampling | None = None
    streams: dict[tuple[str, ...], Stream] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Local:
    """A party's own random stream, current batch, memory and notes.

    Private heads, class keys, targets and residuals live in `memory` and nowhere else. It holds tensors, numbers and
    nested dictionaries of them, so that an engine whose processes come and go can keep it for the party.

    Args:
        party: whose it is.
        seed: what its random streams derive from.
        memory: what defences keep between messages.
        notes: numbers for the record (an epsilon, a clipped share); the owner decides what becomes of them.
        path: the scopes that lead here from the party's root.
        now: the current round and batch.
    """

    party: str
    seed: int
    memory: Memory = dataclasses.field(default_factory=dict, repr=False)
    notes: dict[str, float] = dataclasses.field(default_factory=dict)
    path: tuple[str, ...] = ()
    now: Now = dataclasses.field(default_factory=Now, repr=False)

    def begin(self, round: int) -> None:
        """Enter a round: every stream starts anew from the seed, the party and the round."""
        self.now.round = round
        self.now.streams.clear()

    def scope(self, name: str) -> Local:
        """Return this party's Local for one part: memory and random stream of its own, the rest shared."""
        return dataclasses.replace(self, memory=self.memory.setdefault(name, {}), path=(*self.path, name))

    @property
    def round(self) -> int:
        """The current round; -1 before the first."""
        return self.now.round

    @property
    def batch(self) -> Batch | None:
        """The batch that the current message is made from, as used so far."""
        return self.now.batch

    @property
    def examples(self) -> int:
        """How many examples the party owns."""
        return self.now.examples

    @property
    def classes(self) -> tuple[int, ...]:
        """The classes that the party owns examples of, ascending."""
        return self.now.classes

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts of the agreed model, by name, whether they go out or not; none if nobody told."""
        return self.now.parts

    @property
    def sampling(self) -> Sampling | None:
        """How the current batch was chosen; None if nobody told, so that any example may be in every batch."""
        return self.now.sampling

    @property
    def rng(self) -> Stream:
        """The random stream of this scope and round."""
        if self.path not in self.now.streams:
            self.now.streams[self.path] = stream(self.seed, self.party, self.round, *self.path)
        return self.now.streams[self.path]
