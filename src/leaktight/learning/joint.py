"""Joint training: one federated training under one defence, wherever its parties are."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import safetensors.torch
from pydantic import SerializeAsAny
from torch import Tensor

from leaktight.core.budget import budgets_of
from leaktight.core.defence import Defence, Undefended
from leaktight.core.errors import Refusal
from leaktight.core.local import Memory
from leaktight.core.message import Tensors
from leaktight.core.metric import Reading
from leaktight.core.party import Party
from leaktight.core.private import write_private
from leaktight.core.run import largest
from leaktight.core.scenario import flat, nested
from leaktight.core.secure import SecretKey
from leaktight.core.task import Batch, Task
from leaktight.core.threads import one_thread
from leaktight.core.value import Value
from leaktight.data.source import Data, Source
from leaktight.learning.client import Client
from leaktight.learning.evaluate import utility
from leaktight.learning.federated import Federated
from leaktight.learning.protocol import Gather, Server, federate, in_turn

MODEL_FILE, CURVE_FILE = "model.safetensors", "training.json"


@dataclasses.dataclass(frozen=True)
class Round:
    """How good the model is after some rounds: what whoever leads a training can tell while it goes on."""

    played: int
    readings: tuple[Reading, ...]


@dataclasses.dataclass(frozen=True)
class Trained:
    """What came of a training.

    Args:
        parameters: of the model, by its own names.
        curve: how good it was after each round, without what parties reveal at the end; no reading where nobody can tell without that.
        utility: how good it is in the end.
    """

    parameters: dict[str, Tensor]
    curve: tuple[Round, ...]
    utility: tuple[Reading, ...]


class JointTraining(Value):
    """What all parties and the server agree on before a training: the scenario, the defence and the seed.

    The same value gives the same model on every engine, up to the order in which numbers are added.

    Args:
        scenario: data, model, protocol and rounds.
        defence: what each participant does about leakage.
        seed: what the initial model, the parts of the data and their order derive from, and in a simulation all else. All parties and the
            server know it. In a deployment each node draws the noise and the secrets of its defence from a key of its own.

    Example:
        >>> from leaktight.data import Digits
        >>> from leaktight.models import MLP
        >>> training = JointTraining(scenario=Federated(data=Digits(), model=MLP(hidden=(8,)), rounds=2))
        >>> [round.played for round in training.lead(training.parties()).curve]
        [1, 2]
    """

    scenario: Federated
    defence: SerializeAsAny[Defence] = Undefended()
    seed: int = 0

    @cached_property
    def data(self) -> Data:
        """The data set, read once."""
        return self.scenario.data.load()

    @cached_property
    def task(self) -> Task:
        """The public task with its initial model."""
        return self.defence.on_agree(self.scenario.task(self.data, self.seed))

    def parties(self) -> list[Client]:
        """Return all honest participants, in this process."""
        return self.scenario.clients(self.task, self.data, self.defence, self.seed)

    def party(self, number: int, memory: Memory, own: Source | None = None, key: SecretKey | None = None) -> Client:
        """Return one participant with what it remembers.

        Args:
            number: which one, from 0.
            memory: what it had in its memory after its latest answer; empty before the first.
            own: what it owns, if that is not its part of the scenario's data.
            key: what its noise and its secrets are drawn from, where its messages really leave; None draws them from the agreed seed.
        """
        owned = own.load().train if own else self.data.train.take(self.scenario.parts(self.data, self.seed)[number])
        device = self.task.device
        moved = nested({name: value.to(device) if isinstance(value, Tensor) else value for name, value in flat(memory).items()})
        return self.scenario.client(number, self.task, owned, self.defence, self.seed, moved, key=key)

    def lead(self, parties: Sequence[Party], gather: Gather = in_turn, after: Callable[[Round], None] | None = None) -> Trained:
        """Play all rounds as the server, and return the model.

        Args:
            parties: the participants, or who stands for them here.
            gather: how they are asked.
            after: told of each round.
        """
        task, test = self.task, self.data.test.to(self.task.device)
        server = Server(task.public_parameters(), self.scenario.protocol.optimiser, self.seed, gather)
        curve: list[Round] = []

        def played(number: int) -> None:
            curve.append(Round(number, _judged(task, server.parameters, test)))
            if after is not None:
                after(curve[-1])

        federate(self.scenario.protocol, server, parties, self.scenario.rounds, played)
        reveals = [message for party in parties if (message := party.close()) is not None]
        final = self.defence.on_reveal(task, reveals)
        parameters = final.named(server.parameters)
        return Trained(parameters, tuple(curve), utility(final, parameters, test))


def _judged(task: Task, parameters: Tensors, test: Batch) -> tuple[Reading, ...]:
    """Return how good a model is, or nothing where that can be told only after parties have revealed something."""
    try:
        return utility(task, task.named(parameters), test)
    except Refusal:
        return ()


def write_trained(folder: Path, training: JointTraining, trained: Trained, **about: Any) -> None:
    """Write the model as safetensors, and a JSON of the settings and of how good it was after each round.

    Args:
        folder: where to.
        training: what was trained.
        trained: what came of it.
        about: what else the JSON is to say.
    """
    content = safetensors.torch.save({name: tensor.cpu().contiguous().clone() for name, tensor in trained.parameters.items()})
    write_private(folder / MODEL_FILE, content)
    told = {
        **about,
        "training": training.to_dict(),
        "rounds": [{"round": one.played, "utility": [r.to_dict() for r in one.readings]} for one in trained.curve],
        "utility": [reading.to_dict() for reading in trained.utility],
    }
    write_private(folder / CURVE_FILE, (json.dumps(told, indent=2) + "\n").encode())


def train_here(training: JointTraining, folder: Path, after: Callable[[Round], None] | None = None) -> Trained:
    """Train in this process, with one torch thread as on every other engine, and write the model to a folder.

    Args:
        training: what is trained.
        folder: where the model and its curve go.
        after: told of each round.
    """
    with one_thread():
        parties = training.parties()
        trained = training.lead(parties, after=after)
    notes = largest(party.local.notes for party in parties)
    budgets = list(map(str, budgets_of(notes)))
    write_trained(folder, training, trained, engine="local", notes=notes, **({"privacy_budget": budgets} if budgets else {}))
    return trained
