"""Parties: message in, message out. The same shape in one process, on Flower and over gRPC."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Protocol

from torch import Tensor

from leaktight.core.local import Local
from leaktight.core.message import Message
from leaktight.core.task import Batch, Task


class Party(Protocol):
    """Whoever answers messages."""

    @property
    def name(self) -> str:
        """The name it sends under."""
        ...

    def respond(self, message: Message) -> Message:
        """Answer one message."""
        ...

    def close(self) -> Message | None:
        """Say what is revealed at the end, if anything."""
        ...


@dataclasses.dataclass(frozen=True)
class Seat:
    """What the party in one seat has; an active attack may take the seat over.

    Args:
        name: the party's.
        task: what all parties agreed on.
        data: what this party owns.
        local: this party's own; what must outlast a message is kept in its `memory`, best in a scope of its own.
        honest: who sits here otherwise.
        known: secrets of other parties, by what an attacker must know (`core.threat.Knows`), whose they are and their
            name, joined by `/`, such as `keys/client-1/3`. A scenario names all there are; an attack is handed only
            those that its threat model grants.
    """

    name: str
    task: Task
    data: Batch
    local: Local
    honest: Party
    known: Mapping[str, Tensor] = dataclasses.field(default_factory=dict, repr=False)
