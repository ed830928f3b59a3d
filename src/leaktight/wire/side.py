"""One side of split learning between two machines: what both do alike, whatever connection they have."""

from __future__ import annotations

import abc
import dataclasses
import time
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor

from leaktight.core.device import device_of
from leaktight.core.digest import digest, tensor_parts
from leaktight.core.errors import InvalidValue
from leaktight.core.input_file import MEBIBYTE
from leaktight.core.local import Local, Memory
from leaktight.core.metric import Reading
from leaktight.core.random import seed_of
from leaktight.core.secure import SecretKey
from leaktight.learning.boundary import require_placeable
from leaktight.learning.checkpoint_file import write_checkpoint
from leaktight.learning.feature_party import FeatureParty
from leaktight.learning.label_party import LabelParty
from leaktight.learning.order import Order
from leaktight.wire.answered import Answered
from leaktight.wire.compression import size
from leaktight.wire.frame import CONTROL_LIMIT, Frame
from leaktight.wire.half import Half
from leaktight.wire.hello import Hello, digests
from leaktight.wire.history import History
from leaktight.wire.key_ring import KeyRing
from leaktight.wire.line import Line
from leaktight.wire.payload import HEADER_LIMIT
from leaktight.wire.settings import PartyFile, other


@dataclasses.dataclass(frozen=True)
class Standing:
    """Where a party is, for who watches.

    Args:
        step: how many steps it has taken.
        rounds: of how many.
        loss: the last step's, known to the label party alone.
        sent: bytes over this connection.
        received: likewise.
        seconds: since the connection was made.
        round_trip: seconds that a sign of life took there and back; None before the first.
    """

    step: int
    rounds: int
    loss: float | None
    sent: int
    received: int
    seconds: float
    round_trip: float | None


Watch = Callable[[Standing], None]


_FROM = {"settings": "these settings", "defence": "this defence", "data": "these rows of its own"}


class Side(abc.ABC):
    """One party with its data, its settings and its checkpoints; it outlives connections.

    The party itself is made at the first handshake, since half of a network cannot be made without knowing what enters the other half.
    Its noise follows from keys that it alone knows, and that its checkpoints keep until the training is done. A checkpoint of another
    defence or of other own rows is refused: steps would be answered again with the same noise around something else.

    Args:
        settings: the party's file.
        watch: called after each step; None if nobody watches.
    """

    role: ClassVar[str]

    def __init__(self, settings: PartyFile, watch: Watch | None = None) -> None:
        require_placeable(settings.defence)
        self.settings, self.common, self.watch = settings, settings.agreement, watch
        self.peer = other(self.role)
        self.half = settings.half(self.role)
        self.order = Order(len(self.half.train), self.common.batch_size, seed_of(self.common.seed, "order"))
        path = Path(settings.wire.checkpoint).expanduser()
        self.history = History(path)
        self.device = device_of(self.common.device)
        self.readings: tuple[Reading, ...] = ()
        self.taken = 0
        # Initial weights are in the first checkpoint, so that this key is kept nowhere.
        self.initial = SecretKey.new()
        self.keys = KeyRing(self.role, settings.defence)
        self.training = self._remembered()
        self.answered = Answered(path.with_name(f"{path.name}.answered"), known=bool(self.history.steps))
        self.keys.renew(self.answered.latest + 1)

    @property
    @abc.abstractmethod
    def party(self) -> FeatureParty | LabelParty | None:
        """The party; None before the first handshake."""

    @abc.abstractmethod
    def converse(self, line: Line) -> None:
        """Shake hands, go on from the step that both have reached, and return when the training is done."""

    @abc.abstractmethod
    def kept(self) -> Memory:
        """Return what this role keeps in a checkpoint beside the party's state."""

    @property
    def steps(self) -> list[int]:
        """The steps that this party can go on from."""
        live = [] if self.party is None else [self.party.step]
        return sorted({*live, *self.history.steps}) or [0]

    def hello(self, **told: Any) -> Hello:
        """Return what this party says of itself, and what its role alone says."""
        return Hello(
            role=self.role,
            settings=digests(self.settings.shared()),
            rows=len(self.half.train),
            test_rows=0 if self.half.test is None else len(self.half.test),
            people=self.half.people,
            training=self.training,
            steps=self.steps,
            **told,
        )

    def stand(self, step: int) -> None:
        """Go to a step: nothing to do if the party is there, else back to its checkpoint."""
        if self.party is not None and self.party.step != step:
            self.party.restore(self.history.read(step)["party"])

    def go_on(self) -> None:
        """Take a new party to the last checkpoint at once: a step before the oldest one is never played again."""
        if self.history.steps:
            self.stand(self.history.steps[-1])
            # With this process's key, before anything is answered under it.
            self.checkpoint()

    def local(self) -> Local:
        """Return what this party never sends."""
        return Local(self.role, seed=0, key=self.keys)

    def bound(self, line: Line, shape: tuple[int, ...]) -> None:
        """Let through what a step needs, with room for a clear word about a batch that is somewhat too large."""
        needed = size(self.common.batch_size, shape, "none") + HEADER_LIMIT
        if needed > self.settings.wire.limit:
            raise InvalidValue(
                f"The `largest` of Wire must be at least {needed / MEBIBYTE:.3g} for such activations. Got {self.settings.wire.largest:g} instead."
            )
        line.limit = min(self.settings.wire.limit, max(CONTROL_LIMIT, 2 * needed))

    def send(self, line: Line, frame: Frame) -> None:
        """Send an answer; one that was sent before goes out byte for byte as it did then, or not at all."""
        if frame.step >= 0:
            self.answered.note_answer(frame.sort, frame.step, frame.payload)
        line.send(frame)

    def stepped(self, line: Line, since: float, loss: float | None = None) -> None:
        """Count the step, and say how far the training is."""
        self.taken += 1
        if self.watch is not None and self.party is not None:
            seconds = time.monotonic() - since
            self.watch(Standing(self.party.step, self.common.rounds, loss, line.sent, line.received, seconds, line.round_trip))

    def keep(self, frame: Frame) -> None:
        """Keep what must be kept of a step before its answer goes out: what it is the answer to, and now and then a checkpoint."""
        self.answered.add(frame.step, frame.payload)
        if self.due():
            self.keys.forget(self.history.steps[0])
            self.checkpoint()
            self.answered.forget(self.history.steps[0])

    def due(self) -> bool:
        """Whether it is time for a checkpoint."""
        step = 0 if self.party is None else self.party.step
        return step % self.settings.wire.every == 0 or step == self.common.rounds

    def close(self) -> None:
        """Close the file of answered steps."""
        self.answered.close()

    def finish(self) -> None:
        """Write this half of the model by itself, and drop the keys: nothing is played again, so nobody may need them, or find them."""
        if self.party is None:
            return
        write_checkpoint(self.model_file, self.party.state()["model"])
        self.keys.clear()
        self.checkpoint()
        self.history.drop_previous()

    @property
    def model_file(self) -> Path:
        """Where this party's half of the model lies when the training is done."""
        return self.history.path.with_suffix(".model.safetensors")

    def checkpoint(self) -> None:
        """Write everything that a new process of this party needs."""
        if self.party is None:
            return
        marks = {"keys": self.keys.write(), "training": self.training, **self._made_from}
        texts = {name: _as_tensor(mark) for name, mark in marks.items()}
        self.history.write(self.party.step, {"party": self.party.state(), **texts, **self.kept()})

    @cached_property
    def _made_from(self) -> dict[str, str]:
        """What a checkpoint must have been made from: digests by name."""
        # A training may be prolonged; any other change would make another one of it.
        shared = {name: value for name, value in self.settings.shared().items() if name != "rounds"}
        return {
            "settings": digests({"all": shared})["all"],
            "defence": _digest_of_defence(self.settings),
            "data": _digest_of_rows(self.half),
        }

    def _remembered(self) -> str:
        """Return which training this is, and take its keys, from the last checkpoint; an empty text without one."""
        path, state = self.history.path, self.history.newest()
        if state is None:
            return ""
        marks = {name: state.get(name) for name in ("keys", "training", *_FROM)}
        texts = {name: _as_text(mark) for name, mark in marks.items() if isinstance(mark, Tensor)}
        if texts.keys() != marks.keys():
            raise InvalidValue(f"The file `{path}` must be a party's checkpoint. It is not; name another one, or move it away.")
        for name, words in _FROM.items():
            if texts[name] != self._made_from[name]:
                raise InvalidValue(
                    f"The checkpoint `{path}` must be of a training with {words}. It is of another one; name another `checkpoint`, or move it away."
                )
        self.keys.read(texts["keys"])
        return texts["training"]


def _digest_of_defence(settings: PartyFile) -> str:
    return digests({"defence": [settings.defence.to_dict(), repr(settings.defence.stamp())]})["defence"]


def _digest_of_rows(half: Half) -> str:
    batches = [batch for batch in (half.train, half.test) if batch is not None]
    return digest(*(part for one in batches for part in tensor_parts({"inputs": one.inputs, "labels": one.labels})))


def _as_tensor(text: str) -> Tensor:
    return torch.tensor(list(text.encode()), dtype=torch.uint8)


def _as_text(tensor: Tensor) -> str:
    return bytes(tensor.tolist()).decode(errors="replace")
