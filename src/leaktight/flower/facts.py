"""Facts: what a training's own configuration tells of its local steps."""

from __future__ import annotations

import math
from typing import Any

from flwr.app import RecordDict

_WORDS = {
    "learning_rate": ("lr", "learning-rate", "learning_rate"),
    "batch_size": ("batch-size", "batch_size"),
    "epochs": ("local-epochs", "local_epochs", "epochs"),
    "local_steps": ("local-steps", "local_steps", "steps"),
    "momentum": ("momentum",),
    "round": ("server-round", "server_round"),
}
"""Under which names apps put their settings into a train message's configuration."""


def known_of(received: RecordDict, examples: int | None, told: dict[str, Any]) -> dict[str, Any]:
    """Return what a manifest can say of an update: what its recorder was told, then what the message's configuration says.

    A participant with n examples that trains E epochs in batches of B takes E * ceil(n / B) steps over E * n examples.

    Args:
        received: what the participant was sent.
        examples: how many examples it says it has.
        told: settings that the recorder was given; `epochs` is understood too.

    Example:
        >>> from flwr.app import ConfigRecord
        >>> config = RecordDict({"config": ConfigRecord({"lr": 0.1, "server-round": 3})})
        >>> known = known_of(config, 50, {"batch_size": 20, "epochs": 2, "shape": (1, 8, 8)})
        >>> known["local_steps"], known["examples"], known["learning_rate"], known["round"]
        (6, 100, 0.1, 3)
    """
    config = {key: value for record in received.config_records.values() for key, value in record.items()}
    found: dict[str, Any] = {"round": 0}
    for name, words in _WORDS.items():
        value = next((number for word in words if (number := _number(config.get(word))) is not None), None)
        if value is not None:
            found[name] = value if name in ("learning_rate", "momentum") else int(value)
    found |= told
    epochs = found.pop("epochs", None)
    if examples is not None and "examples" not in found:
        found["examples"] = examples * (epochs or 1)
    size = found.get("batch_size")
    if "local_steps" not in found and examples is not None and epochs and size:
        found["local_steps"] = epochs * math.ceil(examples / size)
    return found


def _number(value: object) -> float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) else None
