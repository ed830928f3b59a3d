"""Local: what one party holds and never sends."""

from __future__ import annotations

import dataclasses
from typing import Any

from leaktight.core.draws import Draws, PublicSeed, Root
from leaktight.core.random import seed_of
from leaktight.core.sampling import Sampling
from leaktight.core.secure import RoundKeys
from leaktight.core.task import Batch

Memory = dict[str, Any]
SPENT = "spent"
"""The name under which a defence keeps what its messages cost so far: all of memory that outlasts a run."""


@dataclasses.dataclass
class Now:
    """Where a party is in a run; all scopes of a Local share it."""

    round: int = -1
    batch: Batch | None = None
    examples: int = 0
    classes: tuple[int, ...] = ()
    parts: tuple[str, ...] = ()
    sampling: Sampling | None = None
    streams: dict[tuple[str, ...], Draws] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Local:
    """A party's own random streams, current batch, memory and notes.

    Private heads, class keys, targets and residuals live in `memory` and nowhere else. It holds tensors, numbers and
    nested dictionaries of them, so that a backend whose processes come and go can keep it for the party.

    This is the one place that decides where a party's random numbers come from. A party whose messages really leave has
    a key; nobody without it can draw its numbers again. In audits and simulations there is none, and the numbers follow
    from the seed.

    Args:
        party: whose it is.
        seed: what its random streams derive from if it has no key. All parties may know it.
        key: the party's secret, in each round or in all, already bound to its defence's settings: others never meet the
            same numbers.
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
    key: RoundKeys | None = None

    def begin(self, round: int) -> None:
        """Enter a round: every stream starts anew from the seed or key, the party and the round."""
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
        """How the current batch was chosen; None if that is unknown, so that any example may be in every batch."""
        return self.now.sampling

    @property
    def draws(self) -> Draws:
        """The random numbers of this scope and round."""
        if self.path not in self.now.streams:
            self.now.streams[self.path] = self._root.derive(self.party, self.round, *self.path).draws()
        return self.now.streams[self.path]

    def fixed_draws(self, owner: str, name: str) -> Draws:
        """Return random numbers that do not depend on the round; the same again only under the same seed or key.

        Args:
            owner: the kind of the defence.
            name: what is drawn.
        """
        return self._root.derive(self.party, *self.path, owner).derive(name).draws()

    def named_draws(self, *names: object) -> Draws:
        """Return random numbers of the party's own for what these names say, beside those of its defence."""
        return self._root.derive(self.party, *names).draws()

    def fork(self, name: str, round: int) -> Local:
        """Return a Local of the same party with its own streams and no memory, for messages outside the rounds."""
        key = None if self.key is None else self.key.at(round).derive(name, round)
        return Local(self.party, seed_of(self.seed, name, round), key=key)

    @property
    def _root(self) -> Root:
        return PublicSeed(self.seed) if self.key is None else self.key.at(self.round)


def spending(memory: Memory) -> Memory:
    """Return the part of a memory that records what was spent, and nothing else.

    Example:
        >>> spending({"0-local_dp": {"spent": 3.0}, "1-top_k": {"residual": 1.0}})
        {'0-local_dp': {'spent': 3.0}}
    """
    inner = {
        name: value if name == SPENT else spending(value)
        for name, value in memory.items()
        if name == SPENT or isinstance(value, dict)
    }
    return {name: value for name, value in inner.items() if name == SPENT or value}
