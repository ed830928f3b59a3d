"""The label party's side of the wire: activations come in, gradients go out as its defence made them."""

from __future__ import annotations

import contextlib
import secrets
import time
from typing import ClassVar

import torch
from torch import Tensor

from leaktight.core.errors import InvalidValue
from leaktight.core.local import Memory
from leaktight.core.message import Kind, Message
from leaktight.data.columns import Columns
from leaktight.learning.boundary import ACTIVATIONS, LABEL_PARTY, received
from leaktight.learning.evaluate import grade_scores
from leaktight.learning.label_party import LabelParty
from leaktight.models.halves import Top, label_half
from leaktight.wire.compression import expanded
from leaktight.wire.fault import Lost, PeerFault
from leaktight.wire.frame import Frame, Sort
from leaktight.wire.hello import Hello, compare, meeting, read_hello, require_bounded, require_small
from leaktight.wire.line import Line
from leaktight.wire.payload import pack_tensors, unpack_tensors
from leaktight.wire.settings import PartyFile
from leaktight.wire.side import Side, Watch

_TRAINING_BYTES = 16


class LabelSide(Side):
    """A label party over a wire.

    What crosses: for each step one frame with the gradient at the cut, as its defence made it; how many classes and rows there are; and a
    sentence about a message that it refuses, which never speaks of labels.
    """

    role: ClassVar[str] = LABEL_PARTY
    _party: LabelParty | None = None
    _inputs: list[int] | None = None

    def __init__(self, settings: PartyFile, watch: Watch | None = None) -> None:
        super().__init__(settings, watch)
        self.losses = torch.full((self.common.rounds,), torch.nan)
        newest = self.history.newest()
        if newest is None:
            self.training = secrets.token_hex(_TRAINING_BYTES)
        else:
            known = newest.get("losses", self.losses[:0])[: self.common.rounds]
            self.losses[: len(known)] = known
            self._inputs = newest["inputs"].tolist() if "inputs" in newest else None

    @property
    def party(self) -> LabelParty | None:
        """The party; None before the first handshake."""
        return self._party

    def converse(self, line: Line) -> None:
        """Listen first, then answer activations until the last step, then grade the test rows."""
        since = time.monotonic()
        party, goes_on = self._shake_hands(line)
        if goes_on:
            opening = party.opening()
            self.send(line, Frame(Sort.GRADIENT, opening.round, pack_tensors(opening.tensors)))
        while party.step < self.common.rounds:
            frame = line.receive(Sort.ACTIVATIONS)
            self.send(line, self._answer(frame, party))
            self.stepped(line, since, float(self.losses[party.step - 1]))
        self._grade(line, party)
        line.send(Frame(Sort.DONE, party.step))
        # Its own half is done, whether or not it hears that the other one knows; but until then that one may come back.
        with contextlib.suppress(Lost):
            line.receive(Sort.DONE)
            self.finish()

    def kept(self) -> Memory:
        """The loss of each step so far, and what the other party said that it puts into the network."""
        step = 0 if self._party is None else self._party.step
        return {"losses": self.losses[:step].clone(), "inputs": torch.tensor(self._inputs or [], dtype=torch.long)}

    def _shake_hands(self, line: Line) -> tuple[LabelParty, bool]:
        """Return the party, at the step that both go on from, and whether there is a step that the feature party has not applied."""
        them = read_hello(line.receive(Sort.HELLO), self.peer)
        compare(self.hello(), them, self.peer)
        party = self._made(them)
        try:
            self.bound(line, party.shape)
        except InvalidValue as error:
            # What the other party puts into the network decides how large activations are.
            raise PeerFault(str(error)) from None
        feature, label = meeting(them.steps, self.steps)
        line.send(self.hello(classes=self.half.classes).frame())
        self.stand(label)
        return party, feature < self.common.rounds

    def _made(self, them: Hello) -> LabelParty:
        """Return the party, made at the first handshake, or anew for other columns as long as nothing was learned."""
        inputs = [len(them.shape), *them.shape, *them.ids]
        if self._inputs not in (None, inputs):
            if self.steps[-1]:
                raise PeerFault(f"{self.peer} must come back with the columns that it had before. Got others instead.")
            self._party = None
        if self._party is None:
            require_bounded(them.inputs, self.settings.wire.most_ids)
            columns = self.half.columns
            own = columns if columns is not None and len(columns) else None
            top, shape = self._half(them, own)
            self._inputs = inputs
            self._party = LabelParty(
                top=top.to(self.device),
                labels=self.half.train.labels.to(self.device),
                order=self.order,
                local=self.local(),
                shape=shape,
                inputs=None if own is None else self.half.train.inputs.to(self.device),
                optimiser=self.common.optimiser,
                defence=self.settings.defence,
            )
            self.go_on()
            if not any(self.history.steps):
                # It is on disk before it is told, so that a process that dies now does not come back with another training.
                self.checkpoint()
        return self._party

    def _half(self, them: Hello, own: Columns | None) -> tuple[Top, tuple[int, ...]]:
        """Return this party's half of the network and the shape of activations; a network that is too large is never built."""
        statistics = self.half.statistics() if self.common.normalise and own is not None else None
        network, classes, seed, cut = self.common.model, self.half.classes, self.initial.derive("model"), self.common.cut
        try:
            require_small(network, them.inputs, classes, self.settings.wire.most_parameters)
            return label_half(network, them.inputs, classes, seed, cut=cut, own=own, own_statistics=statistics)
        except InvalidValue as error:
            # It speaks of the network and of what the other party put into it.
            raise PeerFault(str(error)) from None

    def _answer(self, frame: Frame, party: LabelParty) -> Frame:
        """Take a step, and keep what must be kept before the answer goes out."""
        if frame.step != party.step:
            raise PeerFault(
                f"{self.peer} must send the activations of step {party.step}. Got those of step {frame.step} instead."
            )
        message = self._message(frame, self.common.batch_size, party.shape)
        self.answered.check(frame.step, frame.payload, "the activations", self.peer)
        answer = party.respond(message)
        if party.last is not None:
            self.losses[frame.step] = party.last.loss.cpu()
        self.keep(frame)
        return Frame(Sort.GRADIENT, answer.round, pack_tensors(answer.tensors))

    def _message(self, frame: Frame, rows: int, shape: tuple[int, ...]) -> Message:
        """Return the activations in a frame; everything about them is checked here, so that a fault in them is the sender's."""
        tensors = expanded(unpack_tensors(frame.payload, self.peer), self.settings.wire.compression, self.peer)
        facts = {"examples": float(rows)}
        message = Message(Kind.ACTIVATION, self.peer, self.role, frame.step, tensors, facts)
        try:
            received(message, Kind.ACTIVATION, ACTIVATIONS, (rows, *shape))
        except InvalidValue as error:
            raise PeerFault(str(error)) from None
        return message

    def _grade(self, line: Line, party: LabelParty) -> None:
        """Score the test rows, if there are any; what comes of it stays here."""
        test, size = self.half.test, self.common.batch_size
        if test is None:
            return
        parts: list[Tensor] = []
        for number, at in enumerate(range(0, len(test), size)):
            frame = line.receive(Sort.TEST)
            if frame.step != number:
                raise PeerFault(f"{self.peer} must send the test rows in their order. Got part {frame.step} as part {number}.")
            own = test.inputs[at : at + size].to(self.device)
            activations = self._message(frame, len(own), party.shape).tensors[ACTIVATIONS].to(self.device)
            parts.append(party.scores(activations, own).cpu())
        self.readings = grade_scores(torch.cat(parts), test.labels, self.half.classes)
