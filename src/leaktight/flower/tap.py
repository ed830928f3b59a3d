"""The tap: a mod that writes down what a participant's app sends, for an audit on its own side."""

from __future__ import annotations

import dataclasses
import logging
from pathlib import Path
from typing import Any

from flwr.app import Context, Message, MessageType, RecordDict
from flwr.clientapp.typing import ClientAppCallable
from torch import Tensor

from leaktight.captures.capture import difference, write_capture
from leaktight.core.errors import LeaktightError
from leaktight.flower.arrays import examples_in, received_for, tensors_of
from leaktight.flower.facts import known_of

_log = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class Tap:
    """The mod that `tap` returns; see there."""

    folder: Path
    known: dict[str, Any]

    def __call__(self, message: Message, context: Context, call_next: ClientAppCallable) -> Message:
        """Let a message be answered, and write down what a train message and its answer carried."""
        if message.metadata.message_type.partition(".")[0] != MessageType.TRAIN:
            return call_next(message, context)
        # The app may put its answer into what it was given.
        received = RecordDict(dict(message.content.items()))
        reply = call_next(message, context)
        if not reply.has_error():
            written(self.folder, f"node-{context.node_id}", None, received, reply.content, self.known)
        return reply


def tap(folder: Path | str, **known: Any) -> Tap:
    """Return a mod that writes every update of a ClientApp to a folder on the node, as it goes out.

    Put it before `protect` among the mods to see what leaves, or behind it to see what would have left. Nothing of the examples is
    written. A capture that cannot be written is logged; the training goes on.

    Args:
        folder: where captures are written; use one for each run.
        known: what is known of the training, as in `record`.

    Example:
        >>> from flwr.clientapp import ClientApp
        >>> app = ClientApp(mods=[tap("captures", shape=(1, 28, 28), batch_size=32)])
    """
    return Tap(Path(folder), known)


def written(
    folder: Path, sender: str, round: int | None, received: RecordDict, content: RecordDict, known: dict[str, Any]
) -> None:
    """Write one exchange as a capture; a fault is logged, because a recorder must not end a training.

    Args:
        folder: where to.
        sender: the participant's name.
        round: the server's round; None takes it from the message's configuration.
        received: what the participant was sent.
        content: what it answered.
        known: what is known beside that.
    """
    try:
        before: dict[str, Tensor] = {}
        after: dict[str, Tensor] = {}
        several = len(content.array_records) > 1
        for name, record in content.array_records.items():
            prefix = f"{name}/" if several else ""
            before |= {prefix + one: tensor for one, tensor in tensors_of(received_for(name, received, content)).items()}
            after |= {prefix + one: tensor for one, tensor in tensors_of(record).items()}
        facts = known_of(received, examples_in(content), known)
        number = facts.pop("round") if round is None else round
        write_capture(folder, before, difference(before, after), kind="update", sender=sender, **{**facts, "round": number})
    except (LeaktightError, OSError, ValueError) as error:
        _log.warning("A message of %s could not be recorded: %s", sender, error)
