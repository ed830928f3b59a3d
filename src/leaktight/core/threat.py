"""Threat models: where the attacker sits and what it knows.

They alone can make a View, and a View has no road to the truth.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Collection, Mapping
from enum import StrEnum

import torch
from pydantic import field_serializer
from torch import Tensor

from leaktight.core.defence import Defence
from leaktight.core.errors import Refusal
from leaktight.core.local import Memory
from leaktight.core.message import Kind, Message, Tensors
from leaktight.core.random import stream
from leaktight.core.run import MessageKey, Run, all_but
from leaktight.core.task import Batch, Task
from leaktight.core.value import Value


class Knows(StrEnum):
    """What an attacker may know beside the messages it sees."""

    LABELS = "labels"
    DEFENCE = "defence"
    AUXILIARY = "auxiliary"
    LOCAL_STEPS = "local_steps"
    HINTS = "hints"
    KEYS = "keys"


HINTS = 5
"""How many examples of each class and message an attacker with hints knows the label of, at most."""


@dataclasses.dataclass(frozen=True)
class Hints:
    """The labels of a few examples behind one message: positions in it, in random order, and the label of each."""

    positions: Tensor
    labels: Tensor

    def of(self, label: int) -> Tensor:
        """Return the positions of the hinted examples with this label."""
        return self.positions[self.labels == label]


@dataclasses.dataclass(frozen=True)
class Exchange:
    """A message that answers parameters, with those parameters."""

    parameters: Tensors
    sent: Message


@dataclasses.dataclass(frozen=True)
class View:
    """What an attacker has: the messages at its seat, the public task, and what the threat model grants."""

    seat: str
    messages: tuple[Message, ...]
    task: Task
    labels: Mapping[MessageKey, Tensor] = dataclasses.field(default_factory=dict)
    auxiliary: Batch | None = None
    defence: Defence | None = None
    memory: Memory = dataclasses.field(default_factory=dict)
    hints: Mapping[MessageKey, Hints] = dataclasses.field(default_factory=dict)
    knows: frozenset[Knows] = frozenset()

    def of(self, *kinds: Kind) -> tuple[Message, ...]:
        """Return the messages of these kinds, in order."""
        return tuple(message for message in self.messages if message.kind in kinds)

    @property
    def grants(self) -> frozenset[Knows]:
        """What the threat model grants beside the messages, as far as it shows in this view."""
        there = {
            Knows.LABELS: bool(self.labels),
            Knows.DEFENCE: self.defence is not None,
            Knows.AUXILIARY: self.auxiliary is not None and len(self.auxiliary) > 0,
            Knows.HINTS: bool(self.hints),
            Knows.LOCAL_STEPS: Knows.LOCAL_STEPS in self.knows,
            Knows.KEYS: Knows.KEYS in self.knows,
        }
        return frozenset(thing for thing, is_there in there.items() if is_there)

    def only(self, keys: Collection[MessageKey]) -> View:
        """Return what is left if of all that others shared only these messages had been seen."""
        shared = (Kind.GRADIENT, Kind.UPDATE)
        seen = (m for m in self.messages if m.kind not in shared or m.sender == self.seat or m.key in keys)
        return dataclasses.replace(self, messages=tuple(seen))

    def exchanges(self) -> tuple[Exchange, ...]:
        """Return each gradient or update that others shared, with the parameters it answers; nobody attacks themselves.

        A participant sees none of these. From the parameters of two rounds, and what it sent itself, it can tell the
        mean of what all others sent in the first of them, if it knows how the server steps: that is returned as one
        message, by `all_but(seat)`.
        """
        asked: dict[str, Message] = {}
        sent: tuple[Message, Message] | None = None  # what the seat was asked, and what it answered
        exchanges: list[Exchange] = []
        for message in self.messages:
            if message.kind is Kind.PARAMETERS:
                if message.receiver == self.seat and sent is not None:
                    exchanges += _others(*sent, message, self.task.wires())
                    sent = None
                asked[message.receiver] = message
            elif message.kind in (Kind.GRADIENT, Kind.UPDATE):
                if message.sender == self.seat:
                    sent = asked[message.sender], message
                else:
                    exchanges.append(Exchange(asked[message.sender].tensors, message))
        return tuple(exchanges)


class ThreatModel(Value):
    """A seat and what is known there.

    Args:
        seat: `server` sees everything sent to it, `wire` sees all messages, a participant what it is sent and sends.
        knows: what the attacker has beside the messages; `hints` are the labels of a few examples behind each message,
            at most `HINTS` and at most half of each class; `keys` are the class keys of the others, which an active
            attack is handed in its seat.
    """

    seat: str = "server"
    knows: frozenset[Knows] = frozenset({Knows.LOCAL_STEPS})

    def view(self, run: Run) -> View:
        """Return what the attacker in this seat sees of a run: copies, so that nothing leads back to it."""
        seen = [m for m in run.transcript if self.seat in ("wire", m.sender, m.receiver)]
        if not seen:
            raise Refusal(f"The seat `{self.seat}` sees no message of this run.")
        own = run.locals.get(self.seat)
        # Participants are mostly sent the same tensors: each is copied once.
        copies: dict[int, Tensor] = {}
        return View(
            seat=self.seat,
            messages=tuple(self._show(message, copies) for message in seen),
            task=run.public.copy(),
            labels={m.key: run.truths[m.key].used.labels.clone() for m in seen if m.key in run.truths}
            if Knows.LABELS in self.knows
            else {},
            auxiliary=run.auxiliary.copy() if run.auxiliary and Knows.AUXILIARY in self.knows else None,
            defence=run.defence if Knows.DEFENCE in self.knows else None,
            memory=copy.deepcopy(own.memory) if own else {},
            hints={m.key: _hints(run, m.key) for m in seen if m.key in run.truths} if Knows.HINTS in self.knows else {},
            knows=self.knows,
        )

    def grant(self, known: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Return copies of the others' secrets that this threat model grants.

        The first part of a secret's name says by what knowledge it is granted.

        Example:
            >>> ThreatModel(knows=frozenset()).grant({"keys/client-1/3": torch.ones(2)})
            {}
        """
        return {name: secret.clone() for name, secret in known.items() if name.partition("/")[0] in self.knows}

    @field_serializer("knows")
    def _in_order(self, knows: frozenset[Knows]) -> list[Knows]:
        # A set has another order in every process, and keys are hashes of the text.
        return sorted(knows)

    def _show(self, message: Message, copies: dict[int, Tensor]) -> Message:
        shown = message.facts.keys() if Knows.LOCAL_STEPS in self.knows else ("examples", "participants")
        facts = {name: value for name, value in message.facts.items() if name in shown}

        def clone_once(tensor: Tensor) -> Tensor:
            if id(tensor) not in copies:
                copies[id(tensor)] = tensor.detach().clone()
            return copies[id(tensor)]

        return dataclasses.replace(message.map(clone_once), facts=facts)


def _others(before: Message, own: Message, after: Message, parameters: frozenset[str]) -> list[Exchange]:
    r"""Return the mean of what all others sent in the round of a participant's own message.

    It returns nothing if the mean cannot be derived.

    With parameters \(\theta_t\), n participants, own message m and step s (minus the learning rate for gradients, 1 for
    updates), the server makes \(\theta_{t+1} = \theta_t + s \, (m + (n - 1) \bar m) / n\), so
    \(\bar m = (n (\theta_{t+1} - \theta_t) / s - m) / (n - 1)\). Buffers that are sent along, all but `parameters`, are
    added as they are.
    """
    if after.round != own.round + 1 or not own.tensors.keys() <= before.tensors.keys():
        return []
    count, facts = int(before.facts.get("participants", 1)), before.facts
    gradient = own.kind is Kind.GRADIENT
    derivable = count > 1 and not (
        gradient and ("learning_rate" not in facts or facts.get("momentum") or facts.get("adaptive"))
    )
    # Of a tensor that nobody sends there is nothing to tell.
    change = {name: after.tensors[name] - before.tensors[name] for name in own.tensors}
    if not derivable or not any(tensor.any() for tensor in change.values()):
        return []
    steps = {name: -facts["learning_rate"] if gradient and name in parameters else 1.0 for name in change}
    tensors = {
        name: (count * change[name] / steps[name] - tensor) / (count - 1) for name, tensor in own.tensors.items()
    }
    known = {**own.facts, "examples": own.facts["examples"] * (count - 1)}
    return [
        Exchange(before.tensors, dataclasses.replace(own, sender=all_but(own.sender), tensors=tensors, facts=known))
    ]


def _hints(run: Run, key: MessageKey) -> Hints:
    """Draw the hints about one message, from a stream that its sender's seed and its key name."""
    sender = run.locals.get(key[0])
    labels = run.truths[key].raw.labels
    order = torch.randperm(len(labels), generator=stream(sender.seed if sender else 0, "hints", *key)).to(labels.device)
    shuffled = labels[order]
    positions_by_class = [
        order[shuffled == label][: min(HINTS, int((labels == label).sum()) // 2)]
        for label in torch.unique(labels).tolist()
    ]
    positions = torch.cat(positions_by_class) if positions_by_class else order
    return Hints(positions, labels[positions])
