"""The codec: our messages as contents of Flower's, tensors by name; and a party's fault as one sentence."""

from __future__ import annotations

import json
from typing import Any

import torch
from flwr.app import ConfigRecord, RecordDict

from leaktight.core.errors import InvalidValue, LeaktightError
from leaktight.core.message import Kind, Message, Tensors
from leaktight.flower.arrays import record_of, tensors_of

_ARRAYS, _ABOUT, _FAULT = "tensors", "message", "fault"

_STRANGE = "What came over Flower must be a message of Leaktight. It is not; use the same release on every machine."


def content_of(message: Message, *others: Message) -> RecordDict:
    """Return messages as what Flower carries together.

    Example:
        >>> sent = Message(Kind.GRADIENT, "client-0", "server", 3, {"scale": torch.tensor(0.5)}, {"examples": 4.0})
        >>> messages_of(content_of(sent)) == [sent]
        True
    """
    content = RecordDict()
    for number, each in enumerate((message, *others)):
        content[f"{_ARRAYS}-{number}"] = record_of(each.tensors)
        content[f"{_ABOUT}-{number}"] = ConfigRecord({"message": json.dumps(about_of(each))})
    return content


def about_of(message: Message) -> dict[str, Any]:
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
    """Undo `about_of`."""
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
        raise InvalidValue(f"{sender} must answer round {round}. Got round {message.round} of {message.sender} instead.")
    for name, tensor in message.tensors.items():
        if name not in parameters or tensor.shape != parameters[name].shape:
            raise InvalidValue(
                f"{sender} must send tensors of the model's names and shapes. Got `{name}` {tuple(tensor.shape)}."
            )
        if not torch.isfinite(tensor).all():
            raise InvalidValue(f"{sender} must send finite numbers. Got others in `{name}`.")
