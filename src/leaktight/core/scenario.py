"""Scenarios: how a run comes about. Training is long and shared by many cells; an observation is short and a cell's own."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Callable, Mapping
from typing import ClassVar

from torch import Tensor

from leaktight.core.defence import Defence, Undefended
from leaktight.core.local import Memory
from leaktight.core.message import Tensors
from leaktight.core.metric import Quantity, Reading
from leaktight.core.party import Party, Seat
from leaktight.core.run import Run
from leaktight.core.value import Registered

Enter = Callable[[Seat], Party]
Progress = Callable[[int, int], None]


@dataclasses.dataclass(frozen=True)
class Snapshot:
    """The state of training at one moment: the public parameters, and each party's private memory."""

    parameters: Tensors
    memories: Mapping[str, Memory] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Training:
    """What a training run leaves behind.

    Args:
        snapshots: by stage, `initial`, `early` and `end`.
        utility: how good the final model is.
        notes: numbers that parties noted, the largest over parties.
    """

    snapshots: Mapping[str, Snapshot]
    utility: tuple[Reading, ...] = ()
    notes: Mapping[str, float] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Observation:
    """Which messages to produce: at what stage, how many, from how many examples each."""

    stage: str
    batch_size: int
    victims: int
    seed: int


class Scenario(Registered):
    """Data, model, parties and protocol."""

    family: ClassVar[str] = "scenario"

    @classmethod
    def quantities(cls) -> Mapping[str, Quantity]:
        """Return what the utility of its model is measured by: accuracy, unless it states something else."""
        return {"accuracy": Quantity("accuracy", "%", digits=1)}

    @property
    def stages(self) -> tuple[str, ...]:
        """The stages of a training that can be observed."""
        return ("initial", "early", "end")

    @property
    def untrained(self) -> bool:
        """Whether a training changes nothing, so that its model is good for nothing."""
        return False

    @property
    def messages(self) -> int | None:
        """How many messages of a whole training can be attacked one after the other; None where that is not what is observed."""
        return None

    def shorten(self, rounds: int) -> Scenario:
        """Return the scenario with a training of so many rounds, from which costs are estimated; itself where nothing is trained."""
        return self

    @property
    def baseline(self) -> Defence:
        """What every other defence is compared with, and where an attack is tried on noise: no defence, wherever messages are made here."""
        return Undefended()

    @abc.abstractmethod
    def train(self, defence: Defence, seed: int, progress: Progress | None = None, enter: Enter | None = None) -> Training:
        """Train under a defence and keep the stages.

        Args:
            defence: what the parties do about leakage.
            seed: what all randomness derives from.
            progress: called after each round.
            enter: asked for every chair who sits in it, once all honest parties are there; whoever does plays all rounds, and what is in
                its chair's memory is kept at every stage. None leaves the chairs to the honest.
        """

    @abc.abstractmethod
    def observe(self, training: Training, defence: Defence, observation: Observation, enter: Enter | None = None) -> Run:
        """Let each victim send one message at a stage of a training."""


def flat(memory: Memory, prefix: str = "") -> dict[str, Tensor | float]:
    """Return a nested memory as one level, names joined by `/`."""
    out: dict[str, Tensor | float] = {}
    for name, value in memory.items():
        path = f"{prefix}{name}"
        if isinstance(value, dict):
            out |= flat(value, f"{path}/")
        else:
            out[path] = value
    return out


def nested(values: Mapping[str, Tensor | float]) -> Memory:
    """Undo `flat`."""
    out: Memory = {}
    for path, value in values.items():
        *scopes, name = path.split("/")
        place = out
        for scope in scopes:
            place = place.setdefault(scope, {})
        place[name] = value
    return out
