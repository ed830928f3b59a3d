"""Runs: what happened, kept in two parts. The transcript is public; the inside is not."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from leaktight.core.defence import Defence
from leaktight.core.local import Local
from leaktight.core.message import Message
from leaktight.core.task import Batch, Task

MessageKey = tuple[str, int]


@dataclasses.dataclass(frozen=True)
class Inside:
    """One honest party's own side of one message: metrics and probes see it, attacks never do.

    Args:
        task: the party's own task, private head included.
        raw: the examples as the party holds them, all local steps in order.
        used: the examples as the gradient saw them.
        clean: the message before the boundary.
        sent: the message that went out.
    """

    task: Task
    raw: Batch
    used: Batch
    clean: Message
    sent: Message


@dataclasses.dataclass(frozen=True)
class Run:
    """A public transcript, and beside it what only the parties know.

    Args:
        transcript: every message that crossed the boundary, in order.
        public: the task that all parties agreed on.
        defence: the defence in use; whether an attacker knows it is the threat model's business.
        inside: each honest message's other side, by the message's key.
        locals: each party's Local, by name.
        auxiliary: public data of the same kind, for attackers that the threat model grants it.
        notes: numbers that parties noted, the largest over parties.
    """

    transcript: tuple[Message, ...]
    public: Task
    defence: Defence
    inside: Mapping[MessageKey, Inside]
    locals: Mapping[str, Local] = dataclasses.field(default_factory=dict)
    auxiliary: Batch | None = None
    notes: Mapping[str, float] = dataclasses.field(default_factory=dict)
