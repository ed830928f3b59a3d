"""The tap: a mod that writes down what a participant's app sends, for an audit on its own side."""

from __future__ import annotations

import dataclasses
import logging
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from flwr.app import Context, Message, MessageType, RecordDict
from flwr.clientapp.typing import ClientAppCallable
from torch import Tensor

from leaktight.captures.capture import difference, next_round, write_capture
from leaktight.captures.known import Known
from leaktight.captures.manifest import Manifest
from leaktight.core.errors import LeaktightError
from leaktight.flower.codec import examples_in, matching_record, tensors_of
from leaktight.flower.training_settings import read_settings

_log = logging.getLogger(__name__)
_ROUND = ("server-round", "server_round")
"""Under which names apps put the round into a train message's configuration."""


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
            write_exchange(
                self.folder,
                f"node-{context.node_id}",
                None,
                received,
                reply.content,
                self.known,
                dict(context.run_config),
            )
        return reply


def tap(folder: Path | str, **known: Any) -> Tap:
    """Return a mod that writes every update of a ClientApp to a folder on the node, as it goes out.

    Put it before `protect` among the mods to see what leaves, or behind it to see what would have left. Nothing of the
    examples is written. A capture that cannot be written is logged; the training run continues. How participants train
    is learned as `record` learns it, and from the run's configuration.

    Args:
        folder: where captures are written; use one for each run.
        known: what is known of the training run, as in `record`.

    Example:
        >>> from flwr.clientapp import ClientApp
        >>> app = ClientApp(mods=[tap("captures", shape=(1, 28, 28), batch_size=32)])
    """
    return Tap(Path(folder).expanduser(), check_known(known))


def check_known(known: dict[str, Any]) -> dict[str, Any]:
    """Return what a person states of a training run, checked; a model or function is put by its reference.

    Raises:
        InvalidValue: a field is none, or has a value that it cannot have.
    """
    stated = dict(known)
    model = stated.pop("model", "")
    reference = model if isinstance(model, str) else f"{model.__module__}:{model.__qualname__}"
    checked = {name: value for name, value in Known(**stated) if value is not None}
    return {**checked, **({"model": reference} if reference else {})}


def write_exchange(
    folder: Path,
    sender: str,
    round: int | None,
    received: RecordDict,
    content: RecordDict,
    known: dict[str, Any],
    run_config: dict[str, Any] | None = None,
) -> Manifest | None:
    """Write one exchange as a capture; a fault is logged, because a recorder must not end a training run.

    Args:
        folder: where to.
        sender: the participant's name.
        round: the server's round; None takes it from the message's configuration, and if that names none, the next
            number of this sender in the folder.
        received: what the participant was sent.
        content: what it answered.
        known: what is known beside that.
        run_config: the configuration of the run, if it is known.

    Returns:
        What was written beside the tensors; None if nothing was.
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
        asked = _join_configs(received)
        number = round_in(received) if round is None else round
        facts = facts_of((_join_configs(content), asked, run_config or {}), examples_in(content), known)
        return write_capture(
            folder,
            before,
            difference(before, after),
            kind="update",
            sender=sender,
            round=next_round(folder, sender) if number is None else number,
            **facts,
        )
    except (LeaktightError, OSError, ValueError) as error:
        _log.warning("A message of %s could not be recorded: %s", sender, error)
        return None


def facts_of(configs: Sequence[Mapping[str, Any]], examples: int | None, known: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a manifest can say of an update: what its recorder knows, then what configurations say.

    A participant with n examples that trains E epochs in batches of B takes E * ceil(n / B) steps over E * n examples.
    One that takes S steps trains on S * B examples, or on the n that it reports if these make S batches. What does not
    follow is left out.

    Args:
        configs: that of the reply, that of the train message, and that of the run.
        examples: how many examples the participant says it has, or trained on.
        known: settings that the recorder was given.

    Example:
        >>> facts = facts_of([{"lr": 0.1}], 50, {"batch_size": 20, "epochs": 2, "shape": (1, 8, 8)})
        >>> facts["local_steps"], facts["examples"], facts["learning_rate"]
        (6, 100, 0.1)
        >>> "examples" in facts_of([{"lr": 0.1}], 50, {})
        False
    """
    facts = {**read_settings(*configs), **known}
    if examples is not None:
        facts.setdefault("dataset_size", examples)
    size, epochs, steps = facts.get("batch_size"), facts.get("epochs"), facts.get("local_steps")
    if examples is not None and size is not None:
        # A batch is never larger than the data set.
        facts["batch_size"] = size = min(size, examples)
    if examples is not None and epochs is not None and steps is None:
        facts.setdefault("examples", examples * epochs)
        if size is not None:
            facts["local_steps"] = epochs * math.ceil(examples / size)
    elif steps is not None and size is not None:
        whole = examples is not None and math.ceil(examples / size) == steps
        facts.setdefault("examples", examples if whole else steps * size)
    return facts


def round_in(received: RecordDict) -> int | None:
    """Return the server's round that a message's configuration names; None if it names none."""
    config = _join_configs(received)
    numbers = [config[name] for name in _ROUND if name in config]
    return int(numbers[0]) if numbers and isinstance(numbers[0], int) and not isinstance(numbers[0], bool) else None


def _join_configs(content: RecordDict) -> dict[str, Any]:
    return {key: value for record in content.config_records.values() for key, value in record.items()}
