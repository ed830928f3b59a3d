"""Parties: message in, message out. The same shape in one process, on Flower and over gRPC."""

from __future__ import annotations

import dataclasses
from typing import Protocol

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
    """What the party in one chair has; an active attack may take the chair over."""

    name: str
    task: Task
    data: Batch
    local: Local
    honest: Party
