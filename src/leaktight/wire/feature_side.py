"""The feature party's side of the wire: activations go out, gradients come in."""

from __future__ import annotations

import time
from typing import Any, ClassVar

from torch import Tensor

from leaktight.core.errors import InvalidValue
from leaktight.core.local import Memory
from leaktight.core.message import Kind, Message
from leaktight.learning.boundary import ACTIVATIONS, FEATURE_PARTY, GRADIENT, received
from leaktight.learning.feature_party import FeatureParty
from leaktight.models.halves import feature_half
from leaktight.wire.compression import compressed
from leaktight.wire.fault import PeerFault
from leaktight.wire.frame import Frame, Sort
from leaktight.wire.hello import Hello, compare, meeting, read_hello, require_small
from leaktight.wire.line import Line
from leaktight.wire.payload import pack_tensors, unpack_tensors
from leaktight.wire.side import Side


class FeatureSide(Side):
    """A feature party over a wire.

    What crosses: for each step one frame of activations, as its defence made them and `compression` rounds them; at the end those of
    test rows. Before the first step: how many ids each of its columns has, but neither names nor cells.
    """

    role: ClassVar[str] = FEATURE_PARTY
    _party: FeatureParty | None = None
    _shape: tuple[int, ...] = ()

    @property
    def party(self) -> FeatureParty | None:
        """The party; None before the first handshake."""
        return self._party

    def converse(self, line: Line) -> None:
        """Speak first, then answer each gradient until the last, then send the test rows."""
        since = time.monotonic()
        party = self._shake_hands(line)
        while party.step < self.common.rounds:
            before, frame = party.step, line.receive(Sort.GRADIENT)
            answer = party.respond(self._gradient(frame, party))
            if party.step != before:
                self.keep(frame)
            if party.step < self.common.rounds:
                self.send(line, self._frame(Sort.ACTIVATIONS, party.step, answer.tensors[ACTIVATIONS]))
            self.stepped(line, since)
        self._send_test(line, party)
        line.receive(Sort.DONE)
        line.send(Frame(Sort.DONE, party.step))
        self.finish()

    def kept(self) -> Memory:
        """Nothing more."""
        return {}

    def _shake_hands(self, line: Line) -> FeatureParty:
        own = self.hello(**self._inputs())
        line.send(own.frame())
        them = read_hello(line.receive(Sort.HELLO), self.peer)
        compare(own, them, self.peer)
        party = self._made(them)
        step, _ = meeting(own.steps, them.steps)
        self.stand(step)
        self.training = them.training
        if not self.history.steps:
            self.checkpoint()
        self.bound(line, self._shape)
        return party

    def _inputs(self) -> dict[str, Any]:
        if self.half.columns is None:
            return {"shape": list(self.half.train.inputs.shape[1:])}
        return {"ids": list(self.half.columns.ids)}

    def _made(self, them: Hello) -> FeatureParty:
        """Return the party, made at the first handshake."""
        if not them.training or them.classes < 2:
            raise PeerFault(f"{self.peer} must name a training of at least 2 classes. Got {them.classes} instead.")
        if self._party is None:
            columns = self.half.columns
            inputs = tuple(self.half.train.inputs.shape[1:]) if columns is None else columns
            require_small(self.common.model, inputs, them.classes, self.settings.wire.most_parameters)
            bottom, self._shape = feature_half(
                self.common.model,
                inputs,
                them.classes,
                self.initial.derive("model"),
                cut=self.common.cut,
                statistics=self.half.statistics() if self.common.normalise else None,
            )
            self._party = FeatureParty(
                bottom=bottom.to(self.device),
                inputs=self.half.train.inputs.to(self.device),
                order=self.order,
                local=self.local(),
                optimiser=self.common.optimiser,
                defence=self.settings.defence,
            )
            self.go_on()
        return self._party

    def _gradient(self, frame: Frame, party: FeatureParty) -> Message:
        """Return the message in a frame; one that would be applied is checked first, so that a fault in it is the sender's."""
        tensors = unpack_tensors(frame.payload, self.peer)
        message = Message(Kind.CUT_GRADIENT, self.peer, self.role, frame.step, tensors)
        if frame.step not in (party.step, party.step - 1):
            raise PeerFault(f"{self.peer} must send the gradient of step {party.step}. Got that of step {frame.step} instead.")
        if frame.step == party.step:
            try:
                received(message, Kind.CUT_GRADIENT, GRADIENT, (self.common.batch_size, *self._shape))
            except InvalidValue as error:
                raise PeerFault(str(error)) from None
            self.answered.check(frame.step, frame.payload, "the gradient", self.peer)
        return message

    def _frame(self, sort: Sort, step: int, activations: Tensor) -> Frame:
        return Frame(sort, step, pack_tensors(compressed(activations, self.settings.wire.compression)))

    def _send_test(self, line: Line, party: FeatureParty) -> None:
        if self.half.test is None:
            return
        activations, size = party.features(self.half.test.inputs.to(self.device)), self.common.batch_size
        self.answered.note_answer(Sort.TEST, party.step, pack_tensors({ACTIVATIONS: activations}))
        for number, at in enumerate(range(0, len(activations), size)):
            line.send(self._frame(Sort.TEST, number, activations[at : at + size]))
