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
from leaktight.learning.checkpoint import write_checkpoint
from leaktight.learning.feature_party import FeatureParty
from leaktight.learning.label_party import LabelParty
from leaktight.learning.order import BatchOrder
from leaktight.wire.checkpoints import Checkpoints
from leaktight.wire.compression import size
from leaktight.wire.connection import Connection
from leaktight.wire.frame import CONTROL_LIMIT, NAMES_LIMIT, Frame
from leaktight.wire.handshake import Hello, digests
from leaktight.wire.key_ring import KeyRing
from leaktight.wire.party_data import PartyData
from leaktight.wire.party_file import PartyFile, other_role
from leaktight.wire.replay_guard import ReplayGuard


@dataclasses.dataclass(frozen=True)
class PartyProgress:
    """How far a party is.

    Args:
        step: how many steps it has taken.
        rounds: of how many.
        loss: the last step's, known to the label party alone.
        sent: bytes over this connection.
        received: likewise.
        seconds: since the connection was made.
        response_time: seconds from this party's last message to the other one's answer, network and computing; None
            before the first.
    """

    step: int
    rounds: int
    loss: float | None
    sent: int
    received: int
    seconds: float
    response_time: float | None


OnStep = Callable[[PartyProgress], None]


_SOURCES = {"settings": "these settings", "defence": "this defence", "data": "these rows of its own"}
"""What a checkpoint belongs to, by name, in the words of an error."""


class Side(abc.ABC):
    """One party with its data, its settings and its checkpoints; it outlives connections.

    The party itself is built at the first handshake, since half of a network cannot be built without knowing what
    enters the other half. Its noise follows from keys that it alone knows, and that its checkpoints keep until the
    training run is done. A checkpoint of another defence or of other own rows is refused: steps would be answered again
    with the same noise around something else.

    Args:
        settings: the party's file.
        on_step: called after each step; None if nobody watches.
    """

    role: ClassVar[str]

    def __init__(self, settings: PartyFile, on_step: OnStep | None = None) -> None:
        require_placeable(settings.defence)
        self.settings, self.common, self.on_step = settings, settings.agreement, on_step
        self.peer = other_role(self.role)
        self.data = settings.load_data(self.role)
        self.order = BatchOrder(len(self.data.train), self.common.batch_size, seed_of(self.common.seed, "order"))
        path = Path(settings.wire.checkpoint).expanduser()
        self.checkpoints = Checkpoints(path)
        self.device = device_of(self.common.device)
        self.readings: tuple[Reading, ...] = ()
        self.steps_taken = 0
        # Initial weights are in the first checkpoint, so that this key is kept nowhere.
        self.initial = SecretKey.new()
        self.keys = KeyRing(self.role, settings.defence)
        self.training = self._read_newest()
        self.replay_guard = ReplayGuard(path.with_name(f"{path.name}.replay"), resumes=bool(self.checkpoints.steps))
        self.keys.renew(self.replay_guard.latest + 1)

    @property
    @abc.abstractmethod
    def party(self) -> FeatureParty | LabelParty | None:
        """The party; None before the first handshake."""

    @abc.abstractmethod
    def converse(self, connection: Connection) -> None:
        """Shake hands, resume from the step that both have reached, and return when the training run is done."""

    @abc.abstractmethod
    def extra_state(self) -> Memory:
        """Return what this role keeps in a checkpoint beside the party's state."""

    @property
    def steps(self) -> list[int]:
        """The steps that this party can resume from."""
        current = [] if self.party is None else [self.party.step]
        return sorted({*current, *self.checkpoints.steps}) or [0]

    def hello(self, **of_role: Any) -> Hello:
        """Return what this party says of itself, and what its role alone says."""
        return Hello(
            role=self.role,
            settings=digests(self.settings.shared_settings()),
            rows=len(self.data.train),
            test_rows=0 if self.data.test is None else len(self.data.test),
            people=self.data.people,
            training=self.training,
            steps=self.steps,
            **of_role,
        )

    def go_to(self, step: int) -> None:
        """Go to a step: nothing to do if the party is there, else back to its checkpoint."""
        if self.party is not None and self.party.step != step:
            self.party.restore(self.checkpoints.read(step)["party"])

    def resume(self) -> None:
        """Take a new party to the last checkpoint at once: a step before the oldest one is never replayed."""
        if self.checkpoints.steps:
            self.go_to(self.checkpoints.steps[-1])
            # With this process's key, before anything is answered under it.
            self.checkpoint()

    def local(self) -> Local:
        """Return what this party never sends."""
        return Local(self.role, seed=0, key=self.keys)

    def limit_messages(self, connection: Connection, shape: tuple[int, ...]) -> None:
        """Bound messages by twice what a step needs, so that a batch that is somewhat too large is still named."""
        needed = size(self.common.batch_size, shape, "none") + NAMES_LIMIT
        wire = self.settings.wire
        if needed > wire.limit:
            raise InvalidValue(
                f"The `largest` of Wire must be at least {needed / MEBIBYTE:.3g} for such activations. "
                f"Got {wire.largest:g} instead."
            )
        connection.limit = min(wire.limit, max(CONTROL_LIMIT, 2 * needed))

    def send(self, connection: Connection, frame: Frame) -> None:
        """Send an answer; one that was sent before goes out byte for byte as it did then, or not at all."""
        if frame.step >= 0:
            self.replay_guard.add_answer(frame.sort, frame.step, frame.payload)
        connection.send(frame)

    def report_step(self, connection: Connection, since: float, loss: float | None = None) -> None:
        """Count the step, and say how far the training run is."""
        self.steps_taken += 1
        if self.on_step is not None and self.party is not None:
            traffic = connection.sent, connection.received, time.monotonic() - since, connection.response_time
            self.on_step(PartyProgress(self.party.step, self.common.rounds, loss, *traffic))

    def keep_step(self, frame: Frame) -> None:
        """Keep what must be kept of a step before its answer goes out: its question, and now and then a checkpoint."""
        self.replay_guard.add_question(frame.step, frame.payload)
        if self.is_due():
            self.keys.forget(self.checkpoints.steps[0])
            self.checkpoint()
            self.replay_guard.forget(self.checkpoints.steps[0])

    def is_due(self) -> bool:
        """Whether it is time for a checkpoint."""
        step = 0 if self.party is None else self.party.step
        return step % self.settings.wire.every == 0 or step == self.common.rounds

    def close(self) -> None:
        """Close the replay guard's file."""
        self.replay_guard.close()

    def finish(self) -> None:
        """Write this half of the model by itself, and drop the keys: no step is replayed any more."""
        if self.party is None:
            return
        write_checkpoint(self.model_file, self.party.state()["model"])
        self.keys.clear()
        self.checkpoint()
        self.checkpoints.drop_previous()

    @property
    def model_file(self) -> Path:
        """Where this party's half of the model lies when the training run is done."""
        return self.checkpoints.path.with_suffix(".model.safetensors")

    def checkpoint(self) -> None:
        """Write everything that a new process of this party needs."""
        if self.party is None:
            return
        texts = {"keys": self.keys.write(), "training": self.training, **self._source_digests}
        tensors = {name: _as_tensor(text) for name, text in texts.items()}
        self.checkpoints.write(self.party.step, {"party": self.party.state(), **tensors, **self.extra_state()})

    @cached_property
    def _source_digests(self) -> dict[str, str]:
        """Digests of what a checkpoint belongs to, by name."""
        # A training run may be prolonged; any other change would make another one of it.
        shared = {name: value for name, value in self.settings.shared_settings().items() if name != "rounds"}
        defence = self.settings.defence
        return {
            "settings": digests({"all": shared})["all"],
            "defence": digests({"defence": [defence.to_dict(), repr(defence.stamp())]})["defence"],
            "data": _digest_of_rows(self.data),
        }

    def _read_newest(self) -> str:
        """Return which training run the last checkpoint is of, and take its keys; an empty text without one."""
        path, state = self.checkpoints.path, self.checkpoints.newest()
        if state is None:
            return ""
        tensors = {name: state.get(name) for name in ("keys", "training", *_SOURCES)}
        texts = {name: _as_text(tensor) for name, tensor in tensors.items() if isinstance(tensor, Tensor)}
        if texts.keys() != tensors.keys():
            raise InvalidValue(
                f"The file `{path}` must be a party's checkpoint. It is not; name another one, or move it away."
            )
        for name, words in _SOURCES.items():
            if texts[name] != self._source_digests[name]:
                raise InvalidValue(
                    f"The checkpoint `{path}` must be of a training run with {words}. It is of another one; "
                    "name another `checkpoint`, or move it away."
                )
        self.keys.read(texts["keys"])
        return texts["training"]


def _digest_of_rows(data: PartyData) -> str:
    batches = [batch for batch in (data.train, data.test) if batch is not None]
    return digest(
        *(part for batch in batches for part in tensor_parts({"inputs": batch.inputs, "labels": batch.labels}))
    )


def _as_tensor(text: str) -> Tensor:
    return torch.tensor(list(text.encode()), dtype=torch.uint8)


def _as_text(tensor: Tensor) -> str:
    return bytes(tensor.tolist()).decode(errors="replace")
