"""The codec: arrays of Flower as tensors by name, our messages as contents of Flower's, and a fault as one sentence."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from flwr.app import Array, ArrayRecord, ConfigRecord, MetricRecord, RecordDict
from torch import Tensor

from leaktight.core.errors import InvalidValue, LeaktightError
from leaktight.core.message import Kind, Message, Tensors

NUM_EXAMPLES = ("num-examples", "num_examples")
"""What replies call their number of examples: Flower's messages, and its older clients."""
_ARRAYS, _ABOUT, _FAULT = "tensors", "message", "fault"
_STRANGE = "What came over Flower must be a message of Leaktight. It is not; use the same release on every machine."


def tensors_of(record: ArrayRecord) -> dict[str, Tensor]:
    """Return the arrays of a record as tensors of their own, scalars included.

    Example:
        >>> tensors_of(ArrayRecord({"scale": Array(np.asarray(0.5)), "steps": Array(np.asarray(3))}))
        {'scale': tensor(0.5000, dtype=torch.float64), 'steps': tensor(3)}
    """
    return {name: torch.from_numpy(np.array(array.numpy())) for name, array in record.items()}


def record_of(tensors: Mapping[str, Tensor]) -> ArrayRecord:
    """Return tensors as a record of arrays, in their order."""
    return ArrayRecord({name: Array(np.asarray(tensor.detach().cpu().numpy())) for name, tensor in tensors.items()})


def matching_record(name: str, received: RecordDict, reply: RecordDict) -> ArrayRecord:
    """Return the record that a reply's record of arrays answers: the one of the same name, or the only one there is.

    Args:
        name: the name of the reply's record.
        received: what the participant was sent.
        reply: what it answers.
    """
    if name in received.array_records:
        return received.array_records[name]
    if len(received.array_records) == 1 and len(reply.array_records) == 1:
        return next(iter(received.array_records.values()))
    raise InvalidValue(
        f"The reply's record `{name}` must answer a record of the same name, so that its update can be computed. "
        f"Got {', '.join(f'`{other}`' for other in received.array_records) or 'no arrays'} with the message instead."
    )


def examples_in(content: RecordDict) -> int | None:
    """Return how many examples a reply says it was made from; None if it does not say.

    Example:
        >>> examples_in(RecordDict({"metrics": MetricRecord({"num-examples": 12, "loss": 0.5})}))
        12
    """
    metrics: list[MetricRecord] = list(content.metric_records.values())
    counts = [metric[name] for metric in metrics for name in NUM_EXAMPLES if name in metric]
    return int(counts[0]) if counts and isinstance(counts[0], int | float) and counts[0] >= 1 else None


def content_of(message: Message, *others: Message) -> RecordDict:
    """Return messages as what Flower carries together.

    Example:
        >>> sent = Message(Kind.GRADIENT, "client-0", "server", 3, {"scale": torch.tensor(0.5)}, {"examples": 4.0})
        >>> messages_of(content_of(sent)) == [sent]
        True
    """
    content = RecordDict()
    for number, each in enumerate((message, *others)):
        content[f"{_ARRAYS}-{number}"] = record_of(each.outgoing())
        content[f"{_ABOUT}-{number}"] = ConfigRecord({"message": json.dumps(header_of(each))})
    return content


def header_of(message: Message) -> dict[str, Any]:
    """Return what a message says beside its tensors, for JSON."""
    return {
        "kind": message.kind.value,
        "sender": message.sender,
        "receiver": message.receiver,
        "round": message.round,
        "facts": dict(message.facts),
    }


def fault_of(error: LeaktightError) -> RecordDict:
    """Return what went wrong at a party, for the server to say."""
    return RecordDict({_FAULT: ConfigRecord({_FAULT: str(error)})})


def messages_of(content: RecordDict) -> list[Message]:
    """Undo `content_of`.

    Raises:
        LeaktightError: the sender could not make a message, and says why.
        InvalidValue: it is no such content.
    """
    if _FAULT in content.config_records:
        raise LeaktightError(str(content.config_records[_FAULT].get(_FAULT)))
    count = len(content.config_records)
    try:
        messages = [
            message_of(
                json.loads(str(content.config_records[f"{_ABOUT}-{n}"]["message"])),
                tensors_of(content.array_records[f"{_ARRAYS}-{n}"]),
            )
            for n in range(count)
        ]
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        raise InvalidValue(_STRANGE) from error
    if not messages:
        raise InvalidValue(_STRANGE)
    return messages


def message_of(about: dict[str, Any], tensors: Tensors) -> Message:
    """Undo `header_of`."""
    facts = {str(name): float(value) for name, value in about["facts"].items()}
    kind, sender, receiver = Kind(about["kind"]), str(about["sender"]), str(about["receiver"])
    return Message(kind, sender, receiver, int(about["round"]), tensors, facts)


def require_answer(message: Message, sender: str, round: int, parameters: Tensors) -> None:
    """Raise unless an answer is one that the server may use: by this sender, of this round, finite, with known tensors.

    Args:
        message: what came.
        sender: who was asked.
        round: what was asked for.
        parameters: what the server handed out.

    Raises:
        InvalidValue: it is not that.
    """
    if (message.sender, message.round) != (sender, round):
        raise InvalidValue(
            f"{sender} must answer round {round}. Got round {message.round} of {message.sender} instead."
        )
    for name, tensor in message.tensors.items():
        if name not in parameters or tensor.shape != parameters[name].shape:
            raise InvalidValue(
                f"{sender} must send tensors of the model's names and shapes. Got `{name}` {tuple(tensor.shape)}."
            )
        if not torch.isfinite(tensor).all():
            raise InvalidValue(f"{sender} must send finite numbers. Got others in `{name}`.")
