"""Runs: what happened, kept in two parts. The transcript is public; the inside is not."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping

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
        plain: what an undefended party would have sent for the same raw examples from the same parameters; None if nobody
            asked one. It differs from `clean` where a defence changes the examples, the loss or the gradient.
        owned: everything that the party holds, as a reference; None if nobody wrote it down.
    """

    task: Task = dataclasses.field(repr=False)
    raw: Batch = dataclasses.field(repr=False)
    used: Batch = dataclasses.field(repr=False)
    clean: Message = dataclasses.field(repr=False)
    sent: Message = dataclasses.field(repr=False)
    plain: Message | None = dataclasses.field(default=None, repr=False)
    owned: Batch | None = dataclasses.field(default=None, repr=False)


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
    inside: Mapping[MessageKey, Inside] = dataclasses.field(repr=False)
    locals: Mapping[str, Local] = dataclasses.field(default_factory=dict, repr=False)
    auxiliary: Batch | None = dataclasses.field(default=None, repr=False)
    notes: Mapping[str, float] = dataclasses.field(default_factory=dict)


def largest(notes: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """Merge what several parties noted; of two that speak of the same thing, the larger one is the more cautious.

    Example:
        >>> largest([{"epsilon": 1.0}, {"epsilon": 2.0, "clipped": 0.5}])
        {'epsilon': 2.0, 'clipped': 0.5}
    """
    found: dict[str, float] = {}
    for one in notes:
        for name, value in one.items():
            found[name] = max(value, found.get(name, value))
    return found
