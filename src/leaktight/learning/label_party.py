"""The label party of split learning: it has the labels and the layers after the cut."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from leaktight.core.defence import Defence, Undefended
from leaktight.core.errors import InvalidValue, Refusal
from leaktight.core.local import Local, Memory
from leaktight.core.message import Kind, Message
from leaktight.core.task import Batch
from leaktight.learning.boundary import (
    ACTIVATIONS,
    FEATURE_PARTY,
    GRADIENT,
    LABEL_PARTY,
    accept,
    only_tensor,
    require_finite,
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
from leaktight.learning.task import cross_entropy
from leaktight.models.halves import Top


@dataclasses.dataclass(frozen=True)
class Answer:
    """Both sides of one step's gradient; only the label party and an audit may see more than what was sent."""

    raw: Batch = dataclasses.field(repr=False)
    used: Batch = dataclasses.field(repr=False)
    clean: Message = dataclasses.field(repr=False)
    sent: Message = dataclasses.field(repr=False)
    losses: Tensor = dataclasses.field(repr=False)

    @property
    def loss(self) -> Tensor:
        """The mean loss of the batch."""
        return self.losses.mean()


@dataclasses.dataclass
class LabelParty:
    r"""A party that answers the activations of step t by the gradient at the cut of step t.

    With top model h, activations \(a_i\) and labels \(y_i\) of a batch of n, row i of the clean message is

    .. math:: g_i = \frac{\partial}{\partial a_i} \frac{1}{n} \sum_j L(h(a_j), y_j)
        = \frac{1}{n} \nabla_{a_i} L(h(a_i), y_i),

    the paper's gradient divided by the batch size, so that the feature party's step is that of the mean loss. Noise of
    a fixed scale has to be chosen with that in mind. The defence changes it in `on_message`, where `local.batch` holds
    the labels, before anything else changes: a defence that raises, or activations that are refused, leave the party as
    it was, its memory and notes too. A step is taken at most once; activations of the step before the awaited one, sent
    again, get the same answer again.

    Args:
        top: the layers after the cut, and the wide part.
        labels: its labels, in the agreed order of people.
        order: which rows make the batch of a step.
        local: what it never sends.
        shape: the agreed shape of one example's activations.
        inputs: its own rows, for the wide part; None if it has no features.
        optimiser: how its parameters follow gradients.
        defence: what it does about leakage.
        loss: (scores, labels) to one loss for each example.
        name: the name it sends under.
        peer: who has the features.
    """

    top: Top
    labels: Tensor
    order: BatchOrder
    local: Local
    shape: tuple[int, ...]
    inputs: Tensor | None = None
    optimiser: Optimiser = dataclasses.field(default_factory=Adam)
    defence: Defence = dataclasses.field(default_factory=Undefended)
    loss: Callable[[Any, Tensor], Tensor] = cross_entropy
    name: str = LABEL_PARTY
    peer: str = FEATURE_PARTY

    def __post_init__(self) -> None:
        require_placeable(self.defence)
        if len(self.labels) != self.order.count:
            raise InvalidValue(
                f"{self.name} must hold the {self.order.count} agreed rows. Got {len(self.labels)} instead."
            )
        if len(torch.unique(self.labels)) < 2:
            only = self.labels[0].item()
            raise InvalidValue(
                f"The labels of {self.name} must be of at least 2 classes. Got only {only} instead; check the file."
            )
        own = self.labels.new_zeros((len(self.labels), 0), dtype=torch.float32) if self.inputs is None else self.inputs
        self.data = Batch(own, self.labels)
        self.step = 0
        self.local.now.examples = len(self.labels)
        self._learned = tuple(self.top.parameters())
        self._steps = self.optimiser.over(self._learned)
        self._sent: Message | None = None
        self.last: Answer | None = None

    def opening(self) -> Message:
        """Return what opens an exchange: the last gradient again, or before the first step an empty message."""
        return self._sent or Message(Kind.CUT_GRADIENT, self.name, self.peer, self.step - 1, {})

    def respond(self, message: Message) -> Message:
        """Take one step on activations of the awaited step, or repeat the last answer."""
        require_message(message, self.peer)
        if self._sent is not None and message.round == self.step - 1:
            return self._sent
        return self.answer(message).sent

    def answer(self, message: Message) -> Answer:
        """Take one step, and return both sides of the answer."""
        require_message(message, self.peer)
        if message.round != self.step:
            raise InvalidValue(
                f"{self.name} awaits the activations of step {self.step}. Got those of step {message.round} instead; "
                "resume both parties from one step."
            )
        index = self.order.at(self.step).to(self.labels.device)
        activations = accept(message, Kind.ACTIVATION, ACTIVATIONS, (len(index), *self.shape), self.data.inputs.dtype)
        with rollback_on_error(self.local):
            return self._step(index, activations.to(index.device))

    def _step(self, index: Tensor, activations: Tensor) -> Answer:
        self.local.begin(self.step)
        raw = self.local.now.batch = self.data.take(index)
        used = self.local.now.batch = self.defence.on_batch(raw, self._own())
        if len(used) != len(raw):
            raise Refusal(
                f"{self.defence.kind} changes how many examples a batch has. In split learning both parties agree on "
                "them."
            )
        leaf = activations.detach().requires_grad_(True)
        clear_gradients(self._learned)
        losses = self.loss(self.top(leaf, used.inputs), used.labels)
        torch.autograd.backward(losses.mean())
        clean = self._message(leaf.grad if leaf.grad is not None else torch.zeros_like(leaf))
        for tensor in (clean.tensors[GRADIENT], *(own.grad for own in self._learned)):
            if tensor is not None:
                require_finite(tensor, f"The gradients of {self.name} in step {self.step}")
        sent = self.defence.on_message(clean, self._own())
        if sent is not clean:
            only_tensor(sent, Kind.CUT_GRADIENT, GRADIENT, tuple(leaf.shape), leaf.dtype)
        take_step(self._steps, self.optimiser, self.step)
        self.step += 1
        self._sent = sent
        self.last = Answer(raw, used, clean, sent, losses.detach())
        return self.last

    def close(self) -> Message | None:
        """Reveal what the defence reveals at the end, if anything."""
        tensors = self.defence.on_close(self._own())
        return Message(Kind.REVEAL, self.name, self.peer, self.step, tensors) if tensors else None

    def scores(self, activations: Tensor, inputs: Tensor | None = None) -> Tensor:
        """Return class scores for activations of any rows; `inputs` are the party's own rows of the same people."""
        own = activations.new_zeros((len(activations), 0)) if inputs is None else inputs
        with torch.no_grad():
            scores: Tensor = self.top(activations, own)
        return scores

    def state(self) -> Memory:
        """Return a checkpoint of everything that changes: tensors and numbers, by nested name."""
        sent = None if self._sent is None else self._sent.tensors[GRADIENT]
        return party_state(self.top, self._steps, self.step, self.local, sent)

    def restore(self, state: Memory) -> None:
        """Resume from a checkpoint. Without what was `sent`, the last answer cannot be repeated."""
        self.step, sent = restore_party(self.top, self._steps, self.local, state)
        self._sent = None if sent is None else self._message(sent, self.step - 1)

    def _message(self, gradient: Tensor, step: int | None = None) -> Message:
        facts = {"examples": float(len(gradient))}
        return Message(
            Kind.CUT_GRADIENT, self.name, self.peer, self.step if step is None else step, {GRADIENT: gradient}, facts
        )

    def _own(self) -> Local:
        return self.local.scope("defence")
