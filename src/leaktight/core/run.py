"""Runs: what happened, in two parts. The transcript is public; the ground truth is not."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence

import torch
from torch import Tensor

from leaktight.core.defence import Defence
from leaktight.core.errors import LeaktightError
from leaktight.core.label_bound import LabelBound
from leaktight.core.local import Local
from leaktight.core.message import Message, Tensors
from leaktight.core.task import Batch, Task

MessageKey = tuple[str, int]
_ALL_BUT = "all but "


@dataclasses.dataclass(frozen=True)
class GroundTruth:
    """One honest party's own side of one message: metrics and probes see it, attacks never do.

    Args:
        task: the party's own task, private head included.
        raw: the examples as the party holds them, all local steps in order.
        used: the examples as the gradient saw them.
        clean: the message before the boundary.
        sent: the message that went out.
        plain: what an undefended party would have sent for the same raw examples and parameters; None if that was not
            computed. It differs from `clean` where a defence changes the examples, the loss or the gradient.
        owned: everything that the party holds, as a reference; None if it was not written down.
        losses: the loss of each used example; None if it was not written down.
        private: the parameters that stay home, by the model's name, as they were before the message.
        bound: the limit on every detector of labels that the party's defence states; None if it states none.
        revealed: what the party will reveal at the end, by name; empty if that is nothing, or was not written down.
        masks: what dropout multiplied by, a row for each used example, for each use of a layer; empty if nothing was
            dropped.
        statistics: the mean and the unbiased variance that each batch norm saw, by wire name: over several steps the
            mean by the weight that each step has in the running statistics. Empty without batch norm in training mode.
    """

    task: Task = dataclasses.field(repr=False)
    raw: Batch = dataclasses.field(repr=False)
    used: Batch = dataclasses.field(repr=False)
    clean: Message = dataclasses.field(repr=False)
    sent: Message = dataclasses.field(repr=False)
    plain: Message | None = dataclasses.field(default=None, repr=False)
    owned: Batch | None = dataclasses.field(default=None, repr=False)
    losses: Tensor | None = dataclasses.field(default=None, repr=False)
    private: Tensors = dataclasses.field(default_factory=dict, repr=False)
    bound: LabelBound | None = dataclasses.field(default=None, repr=False)
    revealed: Tensors = dataclasses.field(default_factory=dict, repr=False)
    masks: Tensors = dataclasses.field(default_factory=dict, repr=False)
    statistics: Tensors = dataclasses.field(default_factory=dict, repr=False)


@dataclasses.dataclass(frozen=True)
class Run:
    """A public transcript, and beside it what only the parties know.

    Args:
        transcript: every message that crossed the boundary, in order.
        public: the task that all parties agreed on.
        defence: the defence in use; whether an attacker knows it is the threat model's business.
        truths: each honest message's ground truth, by the message's key.
        locals: each party's Local, by name.
        auxiliary: public data of the same kind, for attackers that the threat model grants it.
        notes: numbers that parties noted, the largest over parties.
    """

    transcript: tuple[Message, ...]
    public: Task
    defence: Defence
    truths: Mapping[MessageKey, GroundTruth] = dataclasses.field(repr=False)
    locals: Mapping[str, Local] = dataclasses.field(default_factory=dict, repr=False)
    auxiliary: Batch | None = dataclasses.field(default=None, repr=False)
    notes: Mapping[str, float] = dataclasses.field(default_factory=dict)

    def truth(self, key: MessageKey) -> GroundTruth:
        """Return the ground truth of a message, or of the mean of all others' messages in a round.

        A participant can derive such a mean.
        """
        if key in self.truths:
            return self.truths[key]
        sender, number = key
        parts = [truth for (party, at), truth in self.truths.items() if at == number and all_but(party) != sender]
        if not parts or sender not in map(all_but, self.locals):
            raise LeaktightError(f"There is no message {key} in this run, and nobody whose others it could stand for.")
        plain = [part.plain for part in parts if part.plain is not None]
        return dataclasses.replace(
            parts[0],
            raw=Batch.join([part.raw for part in parts]),
            used=Batch.join([part.used for part in parts]),
            clean=_mean([part.clean for part in parts], sender),
            sent=_mean([part.sent for part in parts], sender),
            plain=_mean(plain, sender) if len(plain) == len(parts) else None,
            owned=parts[0].owned if len(parts) == 1 else None,
            losses=None,
            masks={},
            statistics=mean_statistics(parts),
            revealed={f"{part.sent.sender}/{name}": key for part in parts for name, key in part.revealed.items()},
        )


def all_but(party: str) -> str:
    """Return the sender that stands for everybody but one party.

    That party can derive the others from a sum.
    """
    return f"{_ALL_BUT}{party}"


def is_joined(ground_truth: GroundTruth) -> bool:
    """Return whether this belongs to several parties' messages at once, of which a participant can derive the mean."""
    return ground_truth.sent.sender.startswith(_ALL_BUT)


def mean_statistics(parts: Sequence[GroundTruth]) -> dict[str, Tensor]:
    """Return the mean of what batch norm saw over several parties."""
    return {name: torch.stack([part.statistics[name] for part in parts]).mean(0) for name in parts[0].statistics}


def _mean(messages: Sequence[Message], sender: str) -> Message:
    names = messages[0].tensors
    tensors = {name: torch.stack([message.tensors[name] for message in messages]).mean(0) for name in names}
    return dataclasses.replace(messages[0], sender=sender, tensors=tensors, sealed={})


def largest(notes: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """Merge what several parties noted. Of two numbers of one name the larger is kept, as the more cautious one.

    Example:
        >>> largest([{"epsilon": 1.0}, {"epsilon": 2.0, "clipped": 0.5}])
        {'epsilon': 2.0, 'clipped': 0.5}
    """
    merged: dict[str, float] = {}
    for noted in notes:
        for name, value in noted.items():
            merged[name] = max(value, merged.get(name, value))
    return merged
