"""Known settings: what may be known of how a message was made, and what an audit assumes where nobody knows."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Annotated, Any, Self

from pydantic import Field, field_validator, model_validator

from leaktight.core.display import join_words
from leaktight.core.errors import InvalidValue
from leaktight.core.value import Value

Count = Annotated[int, Field(ge=1, le=10**9)]


@dataclasses.dataclass(frozen=True)
class AssumedSetting:
    """A setting that an attack has to know or assume.

    Args:
        title: what people call it.
        assumed: what is assumed where nobody knows it; empty if nothing can be.
        stated: how one states it to a recorder.
    """

    title: str
    assumed: str
    stated: str


SETTINGS = {
    "shape": AssumedSetting("the shape of one example", "", "shape=(1, 28, 28)"),
    "local_steps": AssumedSetting("the number of local steps", "one local step", "local_steps=1"),
    "learning_rate": AssumedSetting("the learning rate", "steps of unknown size", "learning_rate=0.1"),
    "optimiser": AssumedSetting("the optimiser", "SGD", "optimiser='sgd'"),
    "momentum": AssumedSetting("momentum", "no momentum", "momentum=0.0"),
    "weight_decay": AssumedSetting("weight decay", "no weight decay", "weight_decay=0.0"),
    "examples": AssumedSetting("the number of epochs", "one pass over the examples that a sender reports", "epochs=1"),
    "mean": AssumedSetting("the normalisation of inputs", "inputs that are not normalised", "mean=(), std=()"),
}
"""What an attack has to know or assume, by its field of `Known`; `mean` stands for the pair that normalises."""
ADAPTIVE = frozenset({"adam", "adamw", "adamax", "nadam", "radam", "adagrad", "adadelta", "rmsprop"})
"""Optimisers that scale each entry of a gradient; attacks replay them as Adam."""
REPLAYED = frozenset({"sgd", "adam"})
"""Optimisers whose steps attacks replay as they are."""


def is_adaptive(optimiser: str | None) -> bool:
    """Return whether an optimiser scales each entry, whatever its other settings; not if nobody knows it.

    Example:
        >>> is_adaptive("adam-unusual"), is_adaptive("sgd"), is_adaptive(None)
        (True, False, False)
    """
    return (optimiser or "").partition("-")[0] in ADAPTIVE


class Known(Value):
    """What may be known of how a message was made. `None` stands for what is not known, and is never taken for 0.

    Args:
        shape: the shape of one example.
        classes: how many classes there are.
        mean: what is taken off each channel before the model sees it; empty if nothing is.
        std: what each channel is divided by then; empty if by nothing.
        examples: how many examples are behind the message, all local steps together.
        dataset_size: how many examples the sender says it has.
        batch_size: how many examples are behind one local step.
        epochs: how often the sender went through its examples.
        local_steps: how many steps an update took.
        optimiser: what made the steps, in lower case, such as `sgd` or `adam`.
        learning_rate: the size of each step.
        momentum: how much of the last step is kept, in [0, 1).
        weight_decay: how much of the parameters is added to each gradient, at least 0.
        training: whether layers were in training mode.

    Example:
        >>> Known(optimiser="SGD", learning_rate=0.1).momentum is None
        True
        >>> Known(mean=()).std
        ()
    """

    shape: tuple[Count, ...] | None = Field(None, max_length=8)
    classes: Annotated[int, Field(ge=2, le=10**6)] | None = None
    mean: tuple[float, ...] | None = Field(None, max_length=10_000)
    std: tuple[Annotated[float, Field(gt=0)], ...] | None = Field(None, max_length=10_000)
    examples: Count | None = None
    dataset_size: Count | None = None
    batch_size: Count | None = None
    epochs: Annotated[int, Field(ge=1, le=100_000)] | None = None
    local_steps: Annotated[int, Field(ge=1, le=100_000)] | None = None
    optimiser: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]{0,39}$")] | None = None
    learning_rate: Annotated[float, Field(gt=0)] | None = None
    momentum: Annotated[float, Field(ge=0, lt=1)] | None = None
    weight_decay: Annotated[float, Field(ge=0)] | None = None
    training: bool | None = None

    @field_validator("optimiser", mode="before")
    @classmethod
    def _in_lower_case(cls, optimiser: Any) -> Any:
        return optimiser.rpartition(".")[2].lower() if isinstance(optimiser, str) else optimiser

    @model_validator(mode="before")
    @classmethod
    def _nothing_by_nothing(cls, fields: Any) -> Any:
        """Take the one of `mean` and `std` that is not given as empty, where the other is."""
        if isinstance(fields, dict):
            for one, other in (("mean", "std"), ("std", "mean")):
                values = fields.get(one)
                if isinstance(values, list | tuple) and not values and fields.get(other) is None:
                    return {**fields, other: ()}
        return fields

    @model_validator(mode="after")
    def _check_pairs(self) -> Self:
        if (self.mean is None) != (self.std is None) or len(self.mean or ()) != len(self.std or ()):
            got = " and ".join("none" if values is None else str(len(values)) for values in (self.mean, self.std))
            raise InvalidValue(f"There must be as many `mean` as `std`. Got {got} instead.")
        return self

    def fill(self, known: Known) -> Self:
        """Return these settings with what others know where these do not.

        Raises:
            InvalidValue: both know a setting, and differ.
        """
        stated = {name: value for name in Known.model_fields if (value := getattr(known, name)) is not None}
        for name, value in stated.items():
            own = getattr(self, name)
            if own is not None and own != value:
                raise InvalidValue(
                    f"What is stated must agree with what was recorded. Got `{name}` {value} where {own} was recorded."
                )
        return type(self).model_validate({**dict(self), **stated}) if stated else self


def unknown_settings(known: Known, update: bool) -> list[str]:
    """Return the fields that nobody knows and that an attack must assume something of.

    A first step has no last one, so momentum matters only where there may be several.

    Args:
        known: what is known.
        update: whether the message is an update, and not a gradient.

    Example:
        >>> unknown_settings(Known(shape=(4,), local_steps=1, learning_rate=0.1, optimiser="sgd"), update=True)
        ['weight_decay', 'mean']
    """
    matters = {
        **dict.fromkeys(SETTINGS, update),
        "shape": True,
        "momentum": update and known.local_steps != 1 and not is_adaptive(known.optimiser),
        "examples": known.dataset_size is not None,
        "mean": True,
    }
    return [name for name in SETTINGS if matters[name] and getattr(known, name) is None]


def phrase_assumptions(names: Iterable[str]) -> str:
    """Return what is assumed of unknown fields, as a part of a sentence.

    Example:
        >>> phrase_assumptions(["momentum", "mean"])
        'no momentum and inputs that are not normalised'
    """
    return join_words([SETTINGS[name].assumed for name in names if SETTINGS[name].assumed])
