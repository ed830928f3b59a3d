"""The tap: a mod that writes down what a participant's app sends, for an audit on its own side."""

from __future__ import annotations

import dataclasses
import logging
import math
from pathlib import Path
from typing import Any

from flwr.app import Context, Message, MessageType, RecordDict
from flwr.clientapp.typing import ClientAppCallable
from torch import Tensor

from leaktight.captures.capture import difference, write_capture
from leaktight.core.errors import LeaktightError
from leaktight.flower.codec import examples_in, matching_record, tensors_of

_log = logging.getLogger(__name__)
_NAMES = {
    "learning_rate": ("lr", "learning-rate", "learning_rate"),
    "batch_size": ("batch-size", "batch_size"),
    "epochs": ("local-epochs", "local_epochs", "epochs"),
    "local_steps": ("local-steps", "local_steps", "steps"),
    "momentum": ("momentum",),
    "round": ("server-round", "server_round"),
}
"""Under which names apps put their settings into a train message's configuration."""


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
            write_exchange(self.folder, f"node-{context.node_id}", None, received, reply.content, self.known)
        return reply


def tap(folder: Path | str, **known: Any) -> Tap:
    """Return a mod that writes every update of a ClientApp to a folder on the node, as it goes out.

    Put it before `protect` among the mods to see what leaves, or behind it to see what would have left. Nothing of the
    examples is written. A capture that cannot be written is logged; the training run continues.

    Args:
        folder: where captures are written; use one for each run.
        known: what is known of the training run, as in `record`.

    Example:
        >>> from flwr.clientapp import ClientApp
        >>> app = ClientApp(mods=[tap("captures", shape=(1, 28, 28), batch_size=32)])
    """
    return Tap(Path(folder), known)


def write_exchange(
    folder: Path, sender: str, round: int | None, received: RecordDict, content: RecordDict, known: dict[str, Any]
) -> None:
    """Write one exchange as a capture; a fault is logged, because a recorder must not end a training run.

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
            old = tensors_of(matching_record(name, received, content))
            before |= {prefix + array: tensor for array, tensor in old.items()}
            after |= {prefix + array: tensor for array, tensor in tensors_of(record).items()}
        facts = facts_of(received, examples_in(content), known)
        number = facts.pop("round") if round is None else round
        write_capture(
            folder, before, difference(before, after), kind="update", sender=sender, **{**facts, "round": number}
        )
    except (LeaktightError, OSError, ValueError) as error:
        _log.warning("A message of %s could not be recorded: %s", sender, error)


def facts_of(received: RecordDict, examples: int | None, known: dict[str, Any]) -> dict[str, Any]:
    """Return what a manifest can say of an update: what its recorder knows, then what the message's configuration says.

    A participant with n examples that trains E epochs in batches of B takes E * ceil(n / B) steps over E * n examples.

    Args:
        received: what the participant was sent.
        examples: how many examples it says it has.
        known: settings that the recorder was given; `epochs` is understood too.

    Example:
        >>> from flwr.app import ConfigRecord
        >>> config = RecordDict({"config": ConfigRecord({"lr": 0.1, "server-round": 3})})
        >>> facts = facts_of(config, 50, {"batch_size": 20, "epochs": 2, "shape": (1, 8, 8)})
        >>> facts["local_steps"], facts["examples"], facts["learning_rate"], facts["round"]
        (6, 100, 0.1, 3)
    """
    config = {key: value for record in received.config_records.values() for key, value in record.items()}
    facts: dict[str, Any] = {"round": 0}
    for name, names in _NAMES.items():
        value = next((number for each in names if (number := _number(config.get(each))) is not None), None)
        if value is not None:
            facts[name] = value if name in ("learning_rate", "momentum") else int(value)
    facts |= known
    epochs = facts.pop("epochs", None)
    if examples is not None and "examples" not in facts:
        facts["examples"] = examples * (epochs or 1)
    size = facts.get("batch_size")
    if "local_steps" not in facts and examples is not None and epochs and size:
        facts["local_steps"] = epochs * math.ceil(examples / size)
    return facts


def _number(value: object) -> float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) else None
