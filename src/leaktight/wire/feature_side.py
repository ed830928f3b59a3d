"""The feature party's side of the wire: activations go out, gradients come in."""

from __future__ import annotations

import time
from typing import Any, ClassVar

from torch import Tensor

from leaktight.core.local import Memory
from leaktight.core.message import Kind, Message
from leaktight.learning.boundary import ACTIVATIONS, FEATURE_PARTY, InvalidMessage
from leaktight.learning.feature_party import FeatureParty
from leaktight.models.halves import feature_half
from leaktight.wire.compression import compress
from leaktight.wire.connection import Connection
from leaktight.wire.fault import PeerFault, printable
from leaktight.wire.frame import Frame, Sort, pack_tensors, unpack_tensors
from leaktight.wire.handshake import Hello, common_steps, read_hello, require_agreement, require_small
from leaktight.wire.side import Side


class FeatureSide(Side):
    """A feature party over a wire.

    What crosses: for each step one frame of activations, as its defence made them and `compression` rounds them; at the
    end those of test rows. Before the first step: how many ids each of its columns has, but neither names nor cells.
    """

    role: ClassVar[str] = FEATURE_PARTY
    _party: FeatureParty | None = None
    _shape: tuple[int, ...] = ()

    @property
    def party(self) -> FeatureParty | None:
        """The party; None before the first handshake."""
        return self._party

    def converse(self, connection: Connection) -> None:
        """Speak first, then answer each gradient until the last, then send the test rows."""
        since = time.monotonic()
        party = self._shake_hands(connection)
        while party.step < self.common.rounds:
            before, frame = party.step, connection.receive(Sort.GRADIENT)
            answer = self._answer(frame, party)
            if party.step != before:
                self.keep_step(frame)
            if party.step < self.common.rounds:
                self.send(connection, self._frame(Sort.ACTIVATIONS, party.step, answer.tensors[ACTIVATIONS]))
            self.report_step(connection, since)
        self._send_test_rows(connection, party)
        connection.receive(Sort.DONE)
        connection.send(Frame(Sort.DONE, party.step))
        self.finish()

    def extra_state(self) -> Memory:
        """Return nothing more."""
        return {}

    def _shake_hands(self, connection: Connection) -> FeatureParty:
        own = self.hello(**self._inputs())
        # A gradient may come right behind the other party's hello, before the shape is known.
        connection.limit = self.settings.wire.limit
        connection.send(own.to_frame())
        them = read_hello(connection.receive(Sort.HELLO), self.peer)
        require_agreement(own, them, self.peer)
        party = self._build_party(them)
        step, _ = common_steps(own.steps, them.steps)
        self.go_to(step)
        self.training = them.training
        if not self.checkpoints.steps:
            self.checkpoint()
        self.limit_messages(connection, self._shape)
        return party

    def _inputs(self) -> dict[str, Any]:
        if self.data.columns is None:
            return {"shape": list(self.data.train.inputs.shape[1:])}
        return {"ids": list(self.data.columns.ids)}

    def _build_party(self, them: Hello) -> FeatureParty:
        """Return the party, built at the first handshake."""
        if not them.training or them.classes < 2:
            raise PeerFault(f"{self.peer} must name a training run of at least 2 classes. Got {them.classes} instead.")
        if self._party is None:
            columns = self.data.columns
            inputs = tuple(self.data.train.inputs.shape[1:]) if columns is None else columns
            require_small(self.common.model, inputs, them.classes, self.settings.wire.most_parameters)
            bottom, self._shape = feature_half(
                self.common.model,
                inputs,
                them.classes,
                self.initial.derive("model"),
                cut=self.common.cut,
                statistics=self.data.statistics() if self.common.normalise else None,
            )
            self._party = FeatureParty(
                bottom=bottom.to(self.device),
                inputs=self.data.train.inputs.to(self.device),
                order=self.order,
                local=self.local(),
                optimiser=self.common.optimiser,
                defence=self.settings.defence,
            )
            self.resume()
        return self._party

    def _answer(self, frame: Frame, party: FeatureParty) -> Message:
        """Return the next activations; a gradient that is not accepted is the sender's fault, and changes nothing."""
        if frame.step not in (party.step, party.step - 1):
            raise PeerFault(
                f"{self.peer} must send the gradient of step {party.step}. Got that of step {frame.step} instead."
            )
        message = Message(Kind.CUT_GRADIENT, self.peer, self.role, frame.step, unpack_tensors(frame.payload, self.peer))
        if frame.step == party.step:
            self.replay_guard.check_question(frame.step, frame.payload, "the gradient", self.peer)
        try:
            return party.respond(message)
        except InvalidMessage as error:
            raise PeerFault(printable(str(error))) from None

    def _frame(self, sort: Sort, step: int, activations: Tensor) -> Frame:
        return Frame(sort, step, pack_tensors(compress(activations, self.settings.wire.compression)))

    def _send_test_rows(self, connection: Connection, party: FeatureParty) -> None:
        if self.data.test is None:
            return
        activations, size = party.features(self.data.test.inputs.to(self.device)), self.common.batch_size
        self.replay_guard.add_answer(Sort.TEST, party.step, pack_tensors({ACTIVATIONS: activations}))
        for number, at in enumerate(range(0, len(activations), size)):
            connection.send(self._frame(Sort.TEST, number, activations[at : at + size]))
