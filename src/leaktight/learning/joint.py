"""Joint training: one federated training run under one defence, wherever its parties are."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
from pydantic import SerializeAsAny
from torch import Tensor

from leaktight.core.budget import budgets_of
from leaktight.core.defence import Defence, Undefended
from leaktight.core.errors import InvalidValue, Refusal
from leaktight.core.local import Memory
from leaktight.core.message import Kind, Message, Tensors
from leaktight.core.metric import Reading
from leaktight.core.party import Party
from leaktight.core.private import write_private
from leaktight.core.run import largest
from leaktight.core.scenario import flatten, unflatten
from leaktight.core.secure import SecretKey
from leaktight.core.task import Batch, Task
from leaktight.core.threads import one_thread
from leaktight.core.value import Value
from leaktight.data.source import Data, Source
from leaktight.learning.client import Client
from leaktight.learning.evaluate import utility
from leaktight.learning.federated import Federated
from leaktight.learning.protocol import Gather, Server, federate, in_turn

MODEL_FILE, REVEAL_FILE, CURVE_FILE = "model.safetensors", "reveals.safetensors", "training.json"


@dataclasses.dataclass(frozen=True)
class Round:
    """How good the model is after some rounds, for whoever leads a training run."""

    played: int
    readings: tuple[Reading, ...]


@dataclasses.dataclass(frozen=True)
class Trained:
    """What came of a training run.

    Args:
        parameters: of the model, by its own names.
        curve: how good it was after each round, without what parties reveal at the end; no reading where nobody can
            tell without that.
        utility: how good it is in the end.
        reveals: what parties revealed at the end, such as class keys; without it some models cannot be used.
    """

    parameters: dict[str, Tensor]
    curve: tuple[Round, ...]
    utility: tuple[Reading, ...]
    reveals: tuple[Message, ...] = ()


class JointTraining(Value):
    """What all parties and the server agree on before a training run: the scenario, the defence and the seed.

    The same value gives the same model on every backend, up to the order in which numbers are added.

    Args:
        scenario: data, model, protocol and rounds.
        defence: what each participant does about leakage.
        seed: what the initial model, the parts of the data and their order derive from, and in a simulation all else.
            All parties and the server know it. In a deployment each node draws the noise and the secrets of its defence
            from a key of its own.

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
            key: what its noise and its secrets are drawn from, where its messages really leave; None draws them from
                the agreed seed.
        """
        owned = own.load().train if own else self.data.train.take(self.scenario.parts(self.data, self.seed)[number])
        device = self.task.device
        moved = unflatten(
            {name: value.to(device) if isinstance(value, Tensor) else value for name, value in flatten(memory).items()}
        )
        return self.scenario.client(number, self.task, owned, self.defence, self.seed, moved, key=key)

    def lead(
        self, parties: Sequence[Party], gather: Gather = in_turn, after: Callable[[Round], None] | None = None
    ) -> Trained:
        """Play all rounds as the server, and return the model.

        Args:
            parties: the participants, or who stands for them here.
            gather: how they are asked.
            after: told of each round.
        """
        task, test = self.task, self.data.test.to(self.task.device)
        running = frozenset(task.public_running())
        server = Server(task.public_state(), self.scenario.protocol.optimiser, self.seed, gather, running)
        curve: list[Round] = []

        def note_round(number: int) -> None:
            curve.append(Round(number, _assess(task, server.parameters, test)))
            if after is not None:
                after(curve[-1])

        federate(self.scenario.protocol, server, parties, self.scenario.rounds, note_round)
        reveals = [message for party in parties if (message := party.close()) is not None]
        final = self.defence.on_reveal(task, reveals)
        parameters = final.model_state(server.parameters)
        return Trained(parameters, tuple(curve), utility(final, parameters, test), tuple(reveals))


def _assess(task: Task, parameters: Tensors, test: Batch) -> tuple[Reading, ...]:
    """Return how good a model is; nothing if that cannot be known before parties have revealed something."""
    try:
        return utility(task, task.model_state(parameters), test)
    except Refusal:
        return ()


def write_trained(folder: Path, training: JointTraining, trained: Trained, **about: Any) -> None:
    """Write the model as safetensors, with its settings and its utility after each round as JSON.

    `read_trained` reads them.

    What parties revealed at the end is in a file beside the model, by party and name: under class keys the model alone
    makes an embedding, and the keys tell its class. Files of an earlier training run there are replaced, or removed.

    Args:
        folder: where to.
        training: what was trained.
        trained: what came of it.
        about: what else the JSON is to say.
    """
    write_private(folder / MODEL_FILE, _content(trained.parameters))
    (folder / REVEAL_FILE).unlink(missing_ok=True)
    if trained.reveals:
        revealed = {f"{one.sender}/{name}": tensor for one in trained.reveals for name, tensor in one.tensors.items()}
        write_private(folder / REVEAL_FILE, _content(revealed))
    summary = {
        **about,
        "training": training.to_dict(),
        "rounds": [{"round": one.played, "utility": [r.to_dict() for r in one.readings]} for one in trained.curve],
        "utility": [reading.to_dict() for reading in trained.utility],
    }
    write_private(folder / CURVE_FILE, (json.dumps(summary, indent=2) + "\n").encode())


def _content(tensors: Tensors) -> bytes:
    return bytes(safetensors.torch.save({name: tensor.cpu().contiguous().clone() for name, tensor in tensors.items()}))


def read_trained(folder: Path | str) -> Task:
    """Return the task that was trained, ready for use.

    Its model has the parameters, and `predict` knows what parties revealed.

    Class scores of examples are `task.predict(task.model(inputs))`. The data set must be where it was: the model is
    made to fit it.

    Args:
        folder: what `write_trained` or `leaktight train` wrote.

    Example:
        >>> import tempfile
        >>> from leaktight.data import Digits
        >>> from leaktight.defences import ClassKeys
        >>> from leaktight.models import MLP
        >>> scenario = Federated(data=Digits(), model=MLP(hidden=(8,)), rounds=2)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     trained = train_here(JointTraining(scenario=scenario, defence=ClassKeys(dimensions=64)), Path(folder))
        ...     task = read_trained(Path(folder))
        >>> task.predict(task.model(Digits().load().test.inputs[:3])).shape
        torch.Size([3, 10])
    """
    place = Path(folder)
    try:
        training = JointTraining.model_validate(json.loads((place / CURVE_FILE).read_bytes())["training"])
        parameters = safetensors.torch.load((place / MODEL_FILE).read_bytes())
        content = (place / REVEAL_FILE).read_bytes() if (place / REVEAL_FILE).exists() else None
        revealed = {} if content is None else safetensors.torch.load(content)
    except (OSError, ValueError, KeyError, TypeError, safetensors.SafetensorError) as error:
        raise InvalidValue(
            f"The folder `{folder}` must hold a model of `leaktight train`. It does not: {error}."
        ) from error
    tensors: dict[str, dict[str, Tensor]] = {}
    for name, tensor in revealed.items():
        sender, _, own = name.partition("/")
        tensors.setdefault(sender, {})[own] = tensor
    reveals = [Message(Kind.REVEAL, sender, "server", training.scenario.rounds, own) for sender, own in tensors.items()]
    task = training.defence.on_reveal(training.task, reveals).copy()
    missing = [name for name in task.model.tensors() if name not in parameters]
    if missing:
        raise InvalidValue(f"The model in `{folder}` must have the parameter `{missing[0]}`. It does not; train again.")
    task.model.load_state_dict(parameters, strict=False)
    task.model.eval()
    return task


def train_here(training: JointTraining, folder: Path, after: Callable[[Round], None] | None = None) -> Trained:
    """Train in this process, with one torch thread as on every other backend, and write the model to a folder.

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
    write_trained(
        folder, training, trained, backend="local", notes=notes, **({"privacy_budget": budgets} if budgets else {})
    )
    return trained
