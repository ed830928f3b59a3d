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
from leaktight.learning.boundary import ACTIVATIONS, LABEL_PARTY, InvalidMessage, accept
from leaktight.learning.evaluate import grade_scores
from leaktight.learning.label_party import LabelParty
from leaktight.models.halves import Top, label_half
from leaktight.wire.compression import decompress
from leaktight.wire.connection import Connection
from leaktight.wire.fault import Lost, PeerFault, printable
from leaktight.wire.frame import Frame, Sort, pack_tensors, unpack_tensors
from leaktight.wire.handshake import Hello, common_steps, read_hello, require_agreement, require_bounded, require_small
from leaktight.wire.party_file import PartyFile
from leaktight.wire.side import OnStep, Side

_TRAINING_BYTES = 16


class LabelSide(Side):
    """A label party over a wire.

    What crosses: for each step one frame with the gradient at the cut, as its defence made it; how many classes and
    rows there are; and a sentence about a message that it refuses, which never speaks of labels.
    """

    role: ClassVar[str] = LABEL_PARTY
    _party: LabelParty | None = None
    _inputs: list[int] | None = None

    def __init__(self, settings: PartyFile, on_step: OnStep | None = None) -> None:
        super().__init__(settings, on_step)
        self.losses = torch.full((self.common.rounds,), torch.nan)
        newest = self.checkpoints.newest()
        if newest is None:
            self.training = secrets.token_hex(_TRAINING_BYTES)
        else:
            losses = newest.get("losses", self.losses[:0])[: self.common.rounds]
            self.losses[: len(losses)] = losses
            self._inputs = newest["inputs"].tolist() if "inputs" in newest else None

    @property
    def party(self) -> LabelParty | None:
        """The party; None before the first handshake."""
        return self._party

    def converse(self, connection: Connection) -> None:
        """Listen first, then answer activations until the last step, then grade the test rows."""
        since = time.monotonic()
        party, continues = self._shake_hands(connection)
        if continues:
            opening = party.opening()
            self.send(connection, Frame(Sort.GRADIENT, opening.round, pack_tensors(opening.tensors)))
        while party.step < self.common.rounds:
            frame = connection.receive(Sort.ACTIVATIONS)
            self.send(connection, self._answer(frame, party))
            self.report_step(connection, since, float(self.losses[party.step - 1]))
        self._grade(connection, party)
        connection.send(Frame(Sort.DONE, party.step))
        # This party is done, whether or not it hears that the other one knows; but until then that one may come back.
        with contextlib.suppress(Lost):
            connection.receive(Sort.DONE)
            self.finish()

    def extra_state(self) -> Memory:
        """Return the loss of each step so far, and what the other party said that it puts into the network."""
        step = 0 if self._party is None else self._party.step
        return {"losses": self.losses[:step].clone(), "inputs": torch.tensor(self._inputs or [], dtype=torch.long)}

    def _shake_hands(self, connection: Connection) -> tuple[LabelParty, bool]:
        """Return the party at the step that both resume from, and whether the feature party has a step to apply."""
        them = read_hello(connection.receive(Sort.HELLO), self.peer)
        require_agreement(self.hello(), them, self.peer)
        party = self._build_party(them)
        try:
            self.limit_messages(connection, party.shape)
        except InvalidValue as error:
            # What the other party puts into the network decides how large activations are.
            raise PeerFault(str(error)) from None
        feature, label = common_steps(them.steps, self.steps)
        connection.send(self.hello(classes=self.data.classes).to_frame())
        self.go_to(label)
        return party, feature < self.common.rounds

    def _build_party(self, them: Hello) -> LabelParty:
        """Return the party, built at the first handshake, or anew for other columns as long as nothing was learned."""
        inputs = [len(them.shape), *them.shape, *them.ids]
        if self._inputs not in (None, inputs):
            if self.steps[-1]:
                raise PeerFault(f"{self.peer} must come back with the columns that it had before. Got others instead.")
            self._party = None
        if self._party is None:
            require_bounded(them.inputs, self.settings.wire.most_ids)
            columns = self.data.columns
            own = columns if columns is not None and len(columns) else None
            top, shape = self._build_half(them, own)
            self._inputs = inputs
            self._party = LabelParty(
                top=top.to(self.device),
                labels=self.data.train.labels.to(self.device),
                order=self.order,
                local=self.local(),
                shape=shape,
                inputs=None if own is None else self.data.train.inputs.to(self.device),
                optimiser=self.common.optimiser,
                defence=self.settings.defence,
            )
            self.resume()
            if not any(self.checkpoints.steps):
                # On disk before the other party hears of it: a process that dies now must come back as the same
                # training run.
                self.checkpoint()
        return self._party

    def _build_half(self, them: Hello, own: Columns | None) -> tuple[Top, tuple[int, ...]]:
        """Return this party's half of the network and the shape of activations; one that is too large is not built."""
        statistics = self.data.statistics() if self.common.normalise and own is not None else None
        network, classes, seed, cut = (
            self.common.model,
            self.data.classes,
            self.initial.derive("model"),
            self.common.cut,
        )
        try:
            require_small(network, them.inputs, classes, self.settings.wire.most_parameters)
            return label_half(network, them.inputs, classes, seed, cut=cut, own=own, own_statistics=statistics)
        except InvalidValue as error:
            # It speaks of the network and of what the other party put into it.
            raise PeerFault(str(error)) from None

    def _answer(self, frame: Frame, party: LabelParty) -> Frame:
        """Take a step, and keep what must be kept before the answer goes out.

        Activations that the party does not accept are the sender's fault, and change nothing.
        """
        if frame.step != party.step:
            raise PeerFault(
                f"{self.peer} must send the activations of step {party.step}. Got those of step {frame.step} instead."
            )
        message = self._message(frame)
        self.replay_guard.check_question(frame.step, frame.payload, "the activations", self.peer)
        try:
            answer = party.respond(message)
        except InvalidMessage as error:
            raise PeerFault(printable(str(error))) from None
        if party.last is not None:
            self.losses[frame.step] = party.last.loss.cpu()
        self.keep_step(frame)
        return Frame(Sort.GRADIENT, answer.round, pack_tensors(answer.tensors))

    def _message(self, frame: Frame) -> Message:
        """Return the activations in a frame, as they came."""
        tensors = decompress(unpack_tensors(frame.payload, self.peer), self.settings.wire.compression, self.peer)
        return Message(Kind.ACTIVATION, self.peer, self.role, frame.step, tensors)

    def _grade(self, connection: Connection, party: LabelParty) -> None:
        """Score the test rows, if there are any; what comes of it stays here."""
        test, size = self.data.test, self.common.batch_size
        if test is None:
            return
        scores: list[Tensor] = []
        for number, at in enumerate(range(0, len(test), size)):
            frame = connection.receive(Sort.TEST)
            if frame.step != number:
                raise PeerFault(
                    f"{self.peer} must send the test rows in their order. Got part {frame.step} as part {number}."
                )
            own = test.inputs[at : at + size].to(self.device)
            try:
                activations = accept(self._message(frame), Kind.ACTIVATION, ACTIVATIONS, (len(own), *party.shape))
            except InvalidMessage as error:
                raise PeerFault(printable(str(error))) from None
            scores.append(party.scores(activations.to(self.device), own).cpu())
        self.readings = grade_scores(torch.cat(scores), test.labels, self.data.classes)
