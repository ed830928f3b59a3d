"""Scenarios: how a run comes about.

Training is long and shared by many cells; an observation is short and a cell's own.
"""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

from torch import Tensor, nn

from leaktight.core.defence import Defence, Undefended
from leaktight.core.local import Memory
from leaktight.core.message import Tensors
from leaktight.core.metric import Quantity, Reading
from leaktight.core.party import Party, Seat
from leaktight.core.run import Run
from leaktight.core.threat import Knows, ThreatModel
from leaktight.core.value import Registered

Enter = Callable[[Seat], Party]
Progress = Callable[[int, int], None]
FEW = 4
"""How many examples a model is asked about for its fingerprint."""


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


@dataclasses.dataclass(frozen=True)
class Content:
    """What the settings of a scenario only name, beside data and code: its fingerprint is taken of it.

    Args:
        model: the network that they make, with its initial parameters; None if they make none.
        inputs: what it is called with: a few examples.
        labels: a class for each of them.
        digests: a digest of each other thing that they name, by a name that a person knows.
    """

    model: nn.Module | None = None
    inputs: tuple[Tensor, ...] = ()
    labels: Tensor | None = None
    digests: Mapping[str, str] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Control:
    """Where an attack must be exact, because the answer follows from the message by arithmetic alone.

    Args:
        scenario: how the messages come about.
        attack: the kind of the attack; `analytic` reads a batch of one off a linear layer with bias.
        threat: where it sits and what it knows.
        batch_size: how many examples are behind a message.
    """

    scenario: Scenario
    attack: str = "analytic"
    threat: ThreatModel = dataclasses.field(default_factory=ThreatModel)
    batch_size: int = 1


class Scenario(Registered):
    """Data, model, parties and protocol.

    Write `train` and `observe`. `content`, `seats`, `check` and `control` let an audit notice what changed, find
    mistakes before it starts and check itself; a kind that leaves them out is run all the same.
    """

    family: ClassVar[str] = "scenario"
    knowable: ClassVar[frozenset[Knows]] = frozenset()
    """What there is to know of its messages beyond labels, the defence and public data."""

    @classmethod
    def quantities(cls) -> Mapping[str, Quantity]:
        """Return what the utility of its model is measured by: accuracy, unless it states something else."""
        return {"accuracy": Quantity("accuracy", "%", digits=1)}

    @property
    def stages(self) -> tuple[str, ...]:
        """The stages of a training run that can be observed."""
        return ("initial", "early", "end")

    @property
    def untrained(self) -> bool:
        """Whether training changes nothing, so that the model is useless."""
        return False

    @property
    def length(self) -> int:
        """How many rounds a training run takes; 0 where it does not go by rounds, or nothing is trained."""
        return 0

    @property
    def messages(self) -> int | None:
        """How many messages of a whole training run can be attacked one after the other.

        None if they are not observed like that.
        """
        return None

    def shorten(self, rounds: int) -> Scenario:
        """Return the scenario with so many rounds of training, to estimate costs by.

        Where nothing is trained, it returns itself.
        """
        return self

    def least_rounds(self, messages: int) -> int:
        """Return the fewest rounds of a training run in which so many messages of it can be observed."""
        return 1

    def repeats_examples(self, notes: Mapping[str, float]) -> bool:
        """Return whether a training run sends several messages about the same examples.

        Args:
            notes: what was noted of the training run.
        """
        return not self.untrained

    def when(self, messages: int) -> tuple[float, ...]:
        """Return after which share of a training run each of so many messages is sent that are observed along it.

        Where a scenario does not know more, they are taken as evenly spread.
        """
        return spread_evenly(messages)

    @property
    def baseline(self) -> Defence:
        """What other defences are compared with, and where an attack is tried on noise.

        That is no defence, unless messages come from elsewhere.
        """
        return Undefended()

    def content(self, seed: int) -> Content:
        """Return what its settings only name; the seed is what the model's initial parameters derive from."""
        return Content()

    def seats(self, seeds: Sequence[int], batch_sizes: Sequence[int]) -> frozenset[str]:
        """Return the names of the parties that send messages of such batches; empty if nothing is known of them.

        Raises:
            InvalidValue: the parties cannot be made, or have too few examples.
        """
        return frozenset()

    def check(self, defences: Sequence[Defence], stages: Sequence[str], victims: int | None, seed: int) -> None:
        """Raise an `InvalidValue` for what must go wrong in every cell under these defences.

        If `victims` is None, it means all there are.
        """

    def control(self) -> Control | None:
        """Return where an audit of it can check itself; None if no answer is known beforehand."""
        return None

    @abc.abstractmethod
    def train(
        self, defence: Defence, seed: int, progress: Progress | None = None, enter: Enter | None = None
    ) -> Training:
        """Train under a defence and keep the stages.

        Args:
            defence: what the parties do about leakage.
            seed: what all randomness derives from.
            progress: called after each round.
            enter: asked for every seat who sits in it, once all honest parties are there; whoever does plays all
                rounds, and what is in its seat's memory is kept at every stage. None leaves the seats to the honest.
        """

    @abc.abstractmethod
    def observe(
        self, training: Training, defence: Defence, observation: Observation, enter: Enter | None = None
    ) -> Run:
        """Let each victim send one message at a stage of a training run."""


def spread_evenly(messages: int) -> tuple[float, ...]:
    """Return so many shares of a training run, evenly spread.

    Example:
        >>> spread_evenly(4)
        (0.125, 0.375, 0.625, 0.875)
    """
    return tuple((number + 0.5) / messages for number in range(messages))


def flatten(memory: Memory, prefix: str = "") -> dict[str, Tensor | float]:
    """Return a nested memory as one level, names joined by `/`."""
    out: dict[str, Tensor | float] = {}
    for name, value in memory.items():
        path = f"{prefix}{name}"
        if isinstance(value, dict):
            out |= flatten(value, f"{path}/")
        else:
            out[path] = value
    return out


def unflatten(values: Mapping[str, Tensor | float]) -> Memory:
    """Undo `flatten`."""
    out: Memory = {}
    for path, value in values.items():
        *scopes, name = path.split("/")
        place = out
        for scope in scopes:
            place = place.setdefault(scope, {})
        place[name] = value
    return out
