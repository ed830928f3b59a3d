"""Node state: what a party remembers between messages, kept at its node and nowhere else."""

from __future__ import annotations

import dataclasses
import hashlib
from pathlib import Path

from flwr.app import ConfigRecord, Context

from leaktight.core.archive import pack, unpack
from leaktight.core.errors import LeaktightError
from leaktight.core.local import Memory
from leaktight.core.message import Message
from leaktight.core.private import write_private
from leaktight.core.scenario import flat, nested

STATE_FOLDER = "state-folder"
"""The setting of a node that names a folder of its own, where its memory outlasts its process."""
_STATE = "leaktight.party"


@dataclasses.dataclass(frozen=True)
class Remembered:
    """A party's memory and notes at one moment."""

    memory: Memory = dataclasses.field(default_factory=dict)
    notes: dict[str, float] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class NodeState:
    """What a party remembered before and after its latest answer.

    Asked the same again, because its answer was lost, it starts from `before` and answers the same; so nothing is applied twice. Asked
    something else for that round, it refuses: the same noise would be drawn again, and the difference of the two answers is free of it.

    Args:
        round: of the latest answer; -1 if there is none.
        before: what it remembered when it was asked.
        after: what it remembers now.
        asked: the digest of what it was asked.

    Example:
        >>> state = NodeState().answered(0, Remembered({"count": 1}), "a1")
        >>> state.start(0, "client-0", "a1").memory, state.start(1, "client-0", "b2").memory
        ({}, {'count': 1})
        >>> NodeState().start(5, "client-0", "a1")
        Traceback (most recent call last):
        leaktight.core.errors.LeaktightError: client-0 was asked for round 5 and remembers none before it: its node was started anew. Start nodes with a `state-folder`, and train again.
    """

    round: int = -1
    before: Remembered = dataclasses.field(default_factory=Remembered)
    after: Remembered = dataclasses.field(default_factory=Remembered)
    asked: str = ""

    def start(self, round: int, name: str, asked: str) -> Remembered:
        """Return what a round starts from."""
        if round == self.round:
            if asked != self.asked:
                raise LeaktightError(
                    f"{name} must be asked the same when it is asked for round {round} again. Got other parameters instead; train again."
                )
            return self.before
        if round == self.round + 1:
            return self.after
        remembers = f"round {self.round} last" if self.round >= 0 else "none before it: its node was started anew"
        raise LeaktightError(
            f"{name} was asked for round {round} and remembers {remembers}. Start nodes with a `state-folder`, and train again."
        )

    def answered(self, round: int, after: Remembered, asked: str) -> NodeState:
        """Return the state after an answer."""
        before = self.before if round == self.round else self.after
        return NodeState(round, before, after, asked)


def digest(message: Message) -> str:
    """Return what stands for a message in a state: two of the same parameters and facts have the same."""
    return hashlib.sha256(pack(message.tensors, {"facts": dict(message.facts)})).hexdigest()


def recall(context: Context, name: str) -> NodeState:
    """Return what a node remembers of a run: from its context, or from its own folder if its process is new."""
    kept = context.state.config_records.get(_STATE)
    if kept is not None:
        return decode(_bytes(kept["state"]))
    path = _path(context, name)
    return decode(path.read_bytes()) if path is not None and path.is_file() else NodeState()


def remember(context: Context, name: str, state: NodeState) -> None:
    """Keep a state in the context, and in the node's own folder if it has one; runs of before are forgotten there."""
    content = encode(state)
    context.state[_STATE] = ConfigRecord({"state": content})
    path = _path(context, name)
    if path is not None:
        write_private(path, content)
        for former in set(path.parent.glob(f"*-{name}.safetensors")) - {path}:
            former.unlink(missing_ok=True)


def encode(state: NodeState) -> bytes:
    """Return a state as an archive."""
    values = {f"before/{name}": value for name, value in flat(state.before.memory).items()}
    values |= {f"after/{name}": value for name, value in flat(state.after.memory).items()}
    return pack(values, {"round": state.round, "notes": [state.before.notes, state.after.notes], "asked": state.asked})


def decode(content: bytes) -> NodeState:
    """Undo `encode`."""
    values, about = unpack(content)
    held = nested(values)
    before, after = about["notes"]
    remembered = Remembered(held.get("before", {}), before), Remembered(held.get("after", {}), after)
    return NodeState(about["round"], *remembered, about["asked"])


def _path(context: Context, name: str) -> Path | None:
    folder = context.node_config.get(STATE_FOLDER)
    return Path(str(folder)) / f"{context.run_id}-{name}.safetensors" if folder else None


def _bytes(value: object) -> bytes:
    if not isinstance(value, bytes):
        raise LeaktightError(
            "What the node's context holds for Leaktight must be bytes. It is something else; start the node anew."
        )
    return value
