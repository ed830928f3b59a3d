"""Victims: messages of one form, stacked, with what the attacker knows about their senders."""

from __future__ import annotations

import dataclasses

import torch
from torch import Tensor

from leaktight.attacks.replay import Replay
from leaktight.attacks.term import Evidence
from leaktight.core.message import Tensors


@dataclasses.dataclass(frozen=True)
class Sighting:
    """One message of each victim, stacked along the first dimension.

    Args:
        replay: how the attacker models the senders.
        parameters: what they were sent; stacked, or one for all if `same` is set.
        same: whether all were sent the same parameters.
        wanted: what they sent and is matched, stacked.
        sent: all that they sent, stacked, buffers that were sent along with it.
    """

    replay: Replay
    parameters: Tensors
    same: bool
    wanted: Tensors
    sent: Tensors

    def evidence(self, victim: int) -> Evidence:
        """Return one victim's message, as a term sees it; nothing predicts buffers but terms that ask for them."""
        parameters = (
            self.parameters if self.same else {name: tensor[victim] for name, tensor in self.parameters.items()}
        )
        wires = self.replay.task.wires()
        buffers = {name: tensor[victim] for name, tensor in self.sent.items() if name not in wires}
        return Evidence(parameters, {name: tensor[victim] for name, tensor in self.wanted.items()}, buffers)


@dataclasses.dataclass(frozen=True)
class Victims:
    """Those whose examples are searched at once.

    Args:
        sightings: what was seen of them: one message each, or several about the same examples.
        targets: known label probabilities (victims, examples, classes); None if they are searched for too.
        secrets: where to start the search for what the senders keep to themselves, (victims * restarts, ...) by name;
            empty if the attacker models no secret. One set for all messages of a sender.
        starts: where to start the search for examples, (victims * restarts, examples, ...) in natural units; None if
            they are drawn.
    """

    sightings: tuple[Sighting, ...]
    targets: Tensor | None
    secrets: Tensors = dataclasses.field(default_factory=dict)
    starts: Tensor | None = None

    def __len__(self) -> int:
        return len(next(iter(self.sightings[0].wanted.values())))

    @property
    def replay(self) -> Replay:
        """How the attacker models the senders of the first message; all are of one task."""
        return self.sightings[0].replay

    @property
    def device(self) -> torch.device:
        """Where everything is."""
        return self.replay.task.device
