"""The feature party of split learning: it has features and the layers before the cut, and no labels."""

from __future__ import annotations

import dataclasses

import torch
from torch import Tensor, nn

from leaktight.core.defence import Defence, Undefended
from leaktight.core.errors import InvalidValue
from leaktight.core.local import Local, Memory
from leaktight.core.message import Kind, Message
from leaktight.core.task import Batch
from leaktight.learning.boundary import (
    ACTIVATIONS,
    FEATURE_PARTY,
    GRADIENT,
    LABEL_PARTY,
    accept,
    require_message,
    require_placeable,
)
from leaktight.learning.checkpoint import (
    clear_gradients,
    party_state,
    restore_party,
    rollback_on_error,
    take_step,
)
from leaktight.learning.optimiser import Adam, Optimiser
from leaktight.learning.order import BatchOrder


@dataclasses.dataclass
class FeatureParty:
    r"""A party that answers the gradient at the cut of step t by the activations of step t + 1.

    With bottom model f, its parameters \(\theta\), its rows \(x_i\) of a batch of n, and row
    \(g_i = \partial \bar L / \partial f(x_i)\) of the message, \(\bar L\) the mean loss over the batch, it follows

    .. math:: \nabla_\theta \bar L = \sum_i (\partial f(x_i) / \partial \theta)^T g_i.

    A gradient is applied at most once: `step` is the step whose activations were sent and whose gradient is awaited.
    The gradient of the step before it, which is what the label party sends again when it does not know whether it
    arrived, is answered by the same activations and changes nothing; so is the empty message of step -1, which opens
    the exchange. Everything else is refused, and changes nothing either.

    Args:
        bottom: the layers before the cut; nothing in it may draw random numbers.
        inputs: its rows, in the agreed order of people.
        order: which rows make the batch of a step.
        local: what it never sends.
        optimiser: how its parameters follow gradients.
        defence: what it does to activations before they go out.
        name: the name it sends under.
        peer: who has the labels.
    """

    bottom: nn.Module
    inputs: Tensor
    order: BatchOrder
    local: Local
    optimiser: Optimiser = dataclasses.field(default_factory=Adam)
    defence: Defence = dataclasses.field(default_factory=Undefended)
    name: str = FEATURE_PARTY
    peer: str = LABEL_PARTY

    def __post_init__(self) -> None:
        require_placeable(self.defence)
        if len(self.inputs) != self.order.count:
            raise InvalidValue(
                f"{self.name} must hold the {self.order.count} agreed rows. Got {len(self.inputs)} instead."
            )
        self.step = 0
        self.local.now.examples = len(self.inputs)
        self._learned = tuple(self.bottom.parameters())
        self._steps = self.optimiser.over(self._learned)
        self._activations: Tensor | None = None
        self._sent: Message | None = None

    def respond(self, message: Message) -> Message:
        """Apply the gradient of the awaited step, if this is it, and return the activations of the next."""
        require_message(message, self.peer)
        if message.round == self.step:
            self._apply(message)
        elif message.round != self.step - 1:
            raise InvalidValue(
                f"{self.name} awaits the gradient of step {self.step}. Got that of step {message.round} instead; "
                "resume both parties from one step."
            )
        if self._sent is None:
            self._sent = self._next_message()
        return self._sent

    def close(self) -> Message | None:
        """Reveal what the defence reveals at the end, if anything."""
        tensors = self.defence.on_close(self._own())
        return Message(Kind.REVEAL, self.name, self.peer, self.step, tensors) if tensors else None

    def rows(self, step: int) -> Tensor:
        """Return the party's rows of a step."""
        return self.inputs[self.order.at(step).to(self.inputs.device)]

    def features(self, inputs: Tensor, chunk: int = 4096) -> Tensor:
        """Return the activations of any rows, as the party sends them to have them scored: defended, batch by batch.

        The defence draws from streams of this step's own and remembers nothing of it.
        """
        with torch.no_grad():
            activations = torch.cat([self.bottom(inputs[at : at + chunk]) for at in range(0, len(inputs), chunk)])
        local = self.local.fork("scored", self.step)
        local.now.examples, size = len(inputs), self.order.batch_size
        parts = []
        for number, at in enumerate(range(0, len(inputs), size)):
            local.begin(number)
            sent = self._defend(inputs[at : at + size], activations[at : at + size], local)
            parts.append(sent.tensors[ACTIVATIONS])
        return torch.cat(parts)

    def state(self) -> Memory:
        """Return a checkpoint of everything that changes: tensors and numbers, by nested name."""
        sent = None if self._sent is None else self._sent.tensors[ACTIVATIONS]
        return party_state(self.bottom, self._steps, self.step, self.local, sent)

    def restore(self, state: Memory) -> None:
        """Resume from a checkpoint. Without what was `sent`, the awaited step's activations are made anew."""
        self.step, sent = restore_party(self.bottom, self._steps, self.local, state)
        self._activations = None
        self._sent = None if sent is None else self._message(sent)

    def _apply(self, message: Message) -> None:
        if self._activations is None:
            self._activations = self.bottom(self.rows(self.step))
        activations = self._activations
        gradient = accept(message, Kind.CUT_GRADIENT, GRADIENT, tuple(activations.shape), activations.dtype)
        clear_gradients(self._learned)
        torch.autograd.backward(activations, gradient.to(activations.device))
        take_step(self._steps, self.optimiser, self.step)
        self._activations = self._sent = None
        self.step += 1

    def _next_message(self) -> Message:
        self.local.begin(self.step)
        rows = self.rows(self.step)
        self._activations = self.bottom(rows)
        with rollback_on_error(self.local):
            return self._defend(rows, self._activations.detach(), self.local)

    def _defend(self, rows: Tensor, activations: Tensor, local: Local) -> Message:
        # It has no labels; the place for them says so.
        local.now.batch = Batch(rows, torch.full((len(rows),), -1, device=rows.device))
        return self.defence.on_message(self._message(activations), local.scope("defence"))

    def _message(self, activations: Tensor) -> Message:
        facts = {"examples": float(len(activations))}
        return Message(Kind.ACTIVATION, self.name, self.peer, self.step, {ACTIVATIONS: activations}, facts)

    def _own(self) -> Local:
        return self.local.scope("defence")
