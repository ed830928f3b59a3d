"""Manifests: what is known of a message that crossed the wire, beside its tensors."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from leaktight.captures.known import REPLAYED, Known, is_adaptive
from leaktight.core.document import parse_json
from leaktight.core.errors import InvalidValue
from leaktight.core.factory import is_reference
from leaktight.core.input_file import LARGEST_SETTINGS, read_input
from leaktight.core.message import Kind
from leaktight.core.private import reason

ENDING = ".capture.json"
LARGEST_GUESS = 1 << 27
"""How many numbers all examples behind one message may have: an attack must hold several times as many."""
_SHOWN = 300

Party = Annotated[str, Field(pattern=r"^[\w.:@ -]{1,100}$")]
FileName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-][A-Za-z0-9._-]{0,199}$")]


class Manifest(Known):
    """What whoever saw a message knows of it: which one it is, where its tensors are, and what `Known` has of it.

    Args:
        kind: `gradient`, the mean over a batch, or `update`, new parameters minus old ones.
        sender: who sent it.
        receiver: whom it was for.
        round: the communication round, at least 0.
        tensors: the file with what was sent, beside the manifest.
        parameters: the file with what the sender was sent before.
        model: `package.module:function` that makes the model; empty if whoever audits is to name it.
        format: how captures are written.

    Example:
        >>> files = {"tensors": "a.safetensors", "parameters": "b.safetensors"}
        >>> Manifest(kind="gradient", sender="client-0", round=3, **files).examples is None
        True
    """

    kind: Literal["gradient", "update"]
    sender: Party
    receiver: Party = "server"
    round: int = Field(ge=0, le=10**9)
    tensors: FileName
    parameters: FileName
    model: str = ""
    format: Literal[1] = 1

    @field_validator("model")
    @classmethod
    def _names_code(cls, model: str) -> str:
        if model and not is_reference(model):
            raise ValueError(f"must have the form `package.module:function`. Got {model!r} instead.")
        return model

    @model_validator(mode="after")
    def _belongs_together(self) -> Manifest:
        if self.sender == self.receiver:
            raise InvalidValue(
                f"A manifest must have a `receiver` other than its `sender`. Got {self.sender!r} for both."
            )
        if math.prod(self.shape or ()) * (self.examples or 1) > LARGEST_GUESS:
            raise InvalidValue(
                f"A manifest must speak of at most {LARGEST_GUESS} numbers in all examples behind a message. "
                f"Got {self.examples or 1} examples of shape {self.shape} instead."
            )
        return self

    @property
    def name(self) -> str:
        """Which message this is, as a text: its sender and round."""
        return f"{self.sender}/{self.round}"

    @property
    def step_size(self) -> int:
        """How many examples are behind one local step, as far as is known; 1 if it is not."""
        if self.batch_size is not None:
            return self.batch_size
        return max(1, (self._examples or 1) // (self.local_steps or 1))

    @property
    def _examples(self) -> int | None:
        """How many examples are behind the message; where nobody knows, as many as the sender says it has."""
        return self.examples or self.dataset_size

    @property
    def adaptive(self) -> bool:
        """Whether its steps are taken for those of an optimiser that scales each entry, such as Adam."""
        return is_adaptive(self.optimiser)

    @property
    def is_replayed(self) -> bool:
        """Whether its optimiser is one whose steps can be replayed as they are, or nobody knows which it is."""
        return self.optimiser is None or self.optimiser in REPLAYED

    def facts(self) -> dict[str, float]:
        """Return the message's facts as an attacker supposes them: what is not known is taken as small as it can be.

        An update of unknown steps is taken as one step of size 1. If it was one step, its direction is then right, and
        its scale is not.
        """
        facts = {"examples": float(self._examples or self.step_size * (self.local_steps or 1))}
        if Kind(self.kind) is Kind.UPDATE:
            known = self.local_steps is not None and self.learning_rate is not None
            facts |= {
                "local_steps": float(self.local_steps or 1),
                "batch_size": float(self.step_size),
                "learning_rate": self.learning_rate if known and self.learning_rate else 1.0,
                "momentum": self.momentum or 0.0,
            }
            facts |= {"weight_decay": self.weight_decay} if known and self.weight_decay else {}
            facts |= {"adaptive": 1.0} if self.adaptive else {}
        return facts

    @property
    def unknown_steps(self) -> bool:
        """Whether this is an update of which the number or the size of its steps is not known."""
        return self.kind == "update" and (self.local_steps is None or self.learning_rate is None)


def parse_manifest(content: bytes, name: str) -> Manifest:
    """Return a manifest from its JSON, or raise one `InvalidValue` that names the file and the first fault."""
    try:
        fields: Any = parse_json(content)
    except ValueError as error:
        raise InvalidValue(f"The manifest `{name}` is not JSON: {_short(error)}. Record the messages again.") from error
    if not isinstance(fields, dict):
        raise InvalidValue(
            f"The manifest `{name}` must hold one table of settings. Got {type(fields).__name__} instead."
        )
    try:
        return Manifest.model_validate(fields)
    except InvalidValue as error:
        raise InvalidValue(f"The manifest `{name}` cannot be used. {_short(error)}") from error


def read_manifest(path: Path) -> Manifest:
    """Read a manifest; a file that is too large for one is not read at all."""
    try:
        content = read_input(path, LARGEST_SETTINGS)
    except OSError as error:
        raise InvalidValue(f"The manifest `{path}` cannot be read: {reason(error)}.") from error
    return parse_manifest(content, path.name)


def _short(error: Exception) -> str:
    """Return the first line of an error, cut where a person stops reading."""
    line = (str(error).splitlines() or [""])[0]
    line = line if isinstance(error, InvalidValue) else line.rstrip(".")
    return line if len(line) <= _SHOWN else f"{line[:_SHOWN]} ..."
