"""Node state: what a party remembers between messages, kept at its node and nowhere else."""

from __future__ import annotations

import dataclasses
import hashlib
from pathlib import Path

from flwr.app import ConfigRecord, Context
from torch import Tensor

from leaktight.core.archive import pack, unpack
from leaktight.core.errors import LeaktightError
from leaktight.core.input_file import LARGEST_STATE, read_input
from leaktight.core.local import Memory, spending
from leaktight.core.message import Message
from leaktight.core.private import write_private
from leaktight.core.scenario import flatten, unflatten
from leaktight.flower.codec import header_of, message_of

SIMULATION = "LEAKTIGHT_SIMULATION"
"""The environment variable that makes a node draw from the agreed seed: its messages never leave this machine."""
STATE_FOLDER = "state-folder"
"""The setting of a node that names a folder of its own, where its memory outlasts its process."""
_STATE = "leaktight.party"


@dataclasses.dataclass(frozen=True)
class NodeState:
    """What a party remembers after its latest answer, and that answer.

    Asked the same again, because its answer was lost, it sends the same bytes again. Asked something else for that
    round, it refuses: nothing is applied twice, and nobody gets two answers to compare.

    Args:
        round: of the latest answer; -1 if there is none.
        memory: what the party keeps between messages.
        notes: its numbers for the record.
        asked: the digest of what it was asked.
        answer: what it answered, with what it revealed.
        runs: how many runs the node took part in before.

    Example:
        >>> state = NodeState(0, memory={"count": 1}, asked="a1", answer=("the answer",))
        >>> state.repeat(0, "client-0", "a1"), state.repeat(1, "client-0", "b2")
        (('the answer',), None)
        >>> NodeState().repeat(5, "client-0", "a1")
        Traceback (most recent call last):
        leaktight.core.errors.LeaktightError: client-0 was asked for round 5 and remembers none before it: \
its node was started anew. Start nodes with a `state-folder`, and train again.
    """

    round: int = -1
    memory: Memory = dataclasses.field(default_factory=dict, repr=False)
    notes: dict[str, float] = dataclasses.field(default_factory=dict)
    asked: str = ""
    answer: tuple[Message, ...] = dataclasses.field(default=(), repr=False)
    runs: int = 0

    def repeat(self, round: int, name: str, asked: str) -> tuple[Message, ...] | None:
        """Return the answer to the same question, if it was asked before; None for the next round; else raise."""
        if round == self.round:
            if asked != self.asked:
                raise LeaktightError(
                    f"{name} must be asked the same when it is asked for round {round} again. "
                    "Got other parameters instead; train again."
                )
            return self.answer
        if round == self.round + 1:
            return None
        remembers = f"round {self.round} last" if self.round >= 0 else "none before it: its node was started anew"
        raise LeaktightError(
            f"{name} was asked for round {round} and remembers {remembers}. Start nodes with a `state-folder`, and "
            "train again."
        )


def digest_message(message: Message) -> str:
    """Return what stands for a message in a state: two of the same parameters and facts have the same."""
    return hashlib.sha256(pack(message.tensors, {"facts": dict(message.facts)})).hexdigest()


def load_state(context: Context, name: str) -> NodeState:
    """Return what a node remembers of a run: from its context, or from its own folder if its process is new.

    Of former runs it remembers what was spent on its examples, and nothing else.
    """
    record = context.state.config_records.get(_STATE)
    if record is not None:
        return decode(_bytes(record["state"]))
    path = _path(context, name)
    if path is None:
        return NodeState()
    if path.is_file():
        return decode(read_input(path, LARGEST_STATE))
    former = [decode(read_input(file, LARGEST_STATE)) for file in _former(path, name)]
    latest = max(former, key=lambda state: state.runs, default=NodeState())
    return NodeState(memory=spending(latest.memory), notes=latest.notes, runs=latest.runs + 1)


def save_state(context: Context, name: str, state: NodeState) -> None:
    """Keep a state in the context, and in the node's own folder if it has one, in place of those of former runs."""
    content = encode(state)
    context.state[_STATE] = ConfigRecord({"state": content})
    path = _path(context, name)
    if path is not None:
        write_private(path, content)
        for former in _former(path, name):
            former.unlink(missing_ok=True)


def encode(state: NodeState) -> bytes:
    """Return a state as an archive."""
    values = {f"memory/{name}": value for name, value in flatten(state.memory).items()}
    for number, message in enumerate(state.answer):
        values |= {f"answer-{number}/{name}": tensor for name, tensor in message.outgoing().items()}
    answer = [header_of(message) for message in state.answer]
    return pack(
        values, {"round": state.round, "notes": state.notes, "asked": state.asked, "answer": answer, "runs": state.runs}
    )


def decode(content: bytes) -> NodeState:
    """Undo `encode`."""
    values, about = unpack(content)
    answer = []
    for number, what in enumerate(about["answer"]):
        place = f"answer-{number}/"
        tensors = {
            name.removeprefix(place): value
            for name, value in values.items()
            if name.startswith(place) and isinstance(value, Tensor)
        }
        answer.append(message_of(what, tensors))
    memory = unflatten({name: value for name, value in values.items() if name.startswith("memory/")}).get("memory", {})
    return NodeState(about["round"], memory, about["notes"], about["asked"], tuple(answer), about["runs"])


def _path(context: Context, name: str) -> Path | None:
    folder = context.node_config.get(STATE_FOLDER)
    return Path(str(folder)) / f"{context.run_id}-{name}.safetensors" if folder else None


def _former(path: Path, name: str) -> set[Path]:
    return set(path.parent.glob(f"*-{name}.safetensors")) - {path}


def _bytes(value: object) -> bytes:
    if not isinstance(value, bytes):
        raise LeaktightError(
            "What the node's context holds for Leaktight must be bytes. It is something else; start the node anew."
        )
    return value
