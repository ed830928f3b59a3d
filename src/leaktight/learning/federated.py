"""The federated scenario: participants that own parts of a data set train one model by a protocol."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import ClassVar, Literal

import torch
from pydantic import Field, SerializeAsAny
from torch import Tensor

from leaktight.core.defence import Defence, Undefended, bind_key
from leaktight.core.device import DeviceName, device_of
from leaktight.core.errors import InvalidValue, Refusal
from leaktight.core.local import Local, Memory
from leaktight.core.message import Message, Tensors
from leaktight.core.party import Party, Seat
from leaktight.core.random import seed_of, stream
from leaktight.core.run import GroundTruth, MessageKey, Run, largest
from leaktight.core.scenario import (
    FEW,
    Content,
    Control,
    Enter,
    Observation,
    Progress,
    Snapshot,
    Training,
    flatten,
    unflatten,
)
from leaktight.core.secure import SecretKey
from leaktight.core.task import Batch, Task
from leaktight.core.threat import Knows
from leaktight.data.partition import Equal, Partition
from leaktight.data.source import Data, Source
from leaktight.learning.client import Batching, Client
from leaktight.learning.client_truth import join_owned, join_truth, take_truth, watch
from leaktight.learning.last_rounds import LastRounds
from leaktight.learning.protocol import SERVER, FedSGD, Protocol, Server, federate
from leaktight.learning.schedule import Schedule, Shuffled
from leaktight.learning.staged import Staged, moment
from leaktight.learning.task import classification
from leaktight.models.network import Network


class Federated(Staged):
    """Several participants, one server, one model.

    Args:
        data: where the examples come from.
        model: the network that is trained.
        partition: how examples are dealt out.
        participants: how many there are, at least 1.
        protocol: what happens in a round.
        rounds: how many rounds a training run takes; 0 leaves the model untrained.
        batch_size: examples per local step in training; the expected number under a defence that counts on Poisson
            sampling.
        schedule: which of its examples a participant trains on in a step. Under a defence that counts on it (`dp_sgd`),
            `shuffled` gives way to Poisson sampling; attacked messages come from the schedule's batches all the same.
        moments: how many evenly spread moments of the training run are kept for the stage `training`, which
            continues from each of them (what the server's optimiser remembers starts anew there); 0 keeps none.
        normalise: whether inputs are standardised by public per-channel constants before the body.
        observed: the protocol of the messages that an audit asks for, where it is another than that of the training
            run, such as `fedsgd` for the gradient of one batch at a network trained by `fedavg`; None for the same.
        averaged: over how many of the last rounds the utility is averaged, at least 1: a single round may be some
            points above or below the ones around it.
        spare_classes: how many outputs the model has beyond the classes of the data, at least 0, for classes that only
            one participant claims to have: the fake class of an attacker.
        device: where tensors live: `cpu`, `cuda`, `mps`, or `auto`.
    """

    kind: Literal["federated"] = "federated"
    knowable: ClassVar[frozenset[Knows]] = frozenset({Knows.LOCAL_STEPS})
    data: SerializeAsAny[Source]
    model: SerializeAsAny[Network]
    partition: SerializeAsAny[Partition] = Equal()
    participants: int = Field(4, ge=1)
    protocol: SerializeAsAny[Protocol] = FedSGD()
    batch_size: int = Field(32, ge=1)
    schedule: SerializeAsAny[Schedule] = Shuffled()
    normalise: bool = True
    # Left out where they are at their defaults, so that settings of before they were there keep their keys.
    observed: SerializeAsAny[Protocol] | None = Field(None, exclude_if=lambda protocol: protocol is None)
    averaged: int = Field(1, ge=1, exclude_if=lambda rounds: rounds == 1)
    spare_classes: int = Field(0, ge=0, exclude_if=lambda count: count == 0)
    device: DeviceName = "cpu"

    def task(self, data: Data, seed: int) -> Task:
        """Return the public task with its initial model."""
        statistics = data.statistics() if self.normalise else None
        classes = data.classes + self.spare_classes
        model = self.model.build(data.shape, classes, seed_of(seed, "model"), statistics)
        return classification(model.to(device_of(self.device)), data.shape, classes, data.names)

    def content(self, seed: int) -> Content:
        """The model, and what it makes of a few test examples."""
        data = self.data.load()
        return Content(self.task(data, seed).model, (data.test.inputs[:FEW],), data.test.labels[:FEW])

    def seats(self, seeds: Sequence[int], batch_sizes: Sequence[int]) -> frozenset[str]:
        """The server and the participants, who must own enough examples for the largest batch."""
        data, largest_batch = self.data.load(), max(batch_sizes)
        _require_normalisable(self.task(data, seeds[0]), data.train.inputs[:largest_batch])
        clients = [
            client
            for seed in seeds
            for client in self.clients(self.task(data, seed), data, Undefended(), seed, batch_size=largest_batch)
        ]
        return frozenset({SERVER, *(client.name for client in clients)})

    def check(self, defences: Sequence[Defence], stages: Sequence[str], victims: int | None, seed: int) -> None:
        """Let participants agree on each defence, and draw a batch: what they cannot do, no cell could."""
        if "training" in stages and victims is not None:
            self._require_own_protocol()
            self.rounds_per_moment(victims)
        data = self.data.load()
        task = self.task(data, seed)
        for defence in defences:
            # A refusal is a cell's own result.
            with suppress(Refusal):
                defence.on_agree(task)
        self.clients(task, data, Undefended(), seed)[0].batches(0)

    def control(self) -> Control:
        """A plain network, untrained.

        The gradient of a well trained model is small, and what is exact drowns in rounding.
        """
        plain = {"model": {"kind": "mlp"}, "protocol": FedSGD(), "rounds": 0}
        return Control(Federated.model_validate({**dict(self), **plain}))

    def train(
        self, defence: Defence, seed: int, progress: Progress | None = None, enter: Enter | None = None
    ) -> Training:
        """Train all rounds under a defence; keep the stages, the utility on test data and the parties' notes."""
        data = self.data.load()
        task = defence.on_agree(self.task(data, seed))
        clients = self.clients(task, data, defence, seed)
        parties = [enter(seat) for seat in _seats(clients)] if enter else clients
        server = _server(task, task.public_state(), self.protocol, seed)
        snapshots, after = self.keeper(lambda: _snapshot(server, clients), progress)
        last = LastRounds(server, self.rounds, self.averaged)
        federate(self.protocol, server, parties, self.rounds, last.then(after))
        reveals = [message for party in parties if (message := party.close()) is not None]
        final = defence.on_reveal(task, reveals)
        readings = last.utility(final, data.test.to(task.device), keep=True)
        return Training(snapshots, readings, largest(client.local.notes for client in clients))

    def observe(
        self, training: Training, defence: Defence, observation: Observation, enter: Enter | None = None
    ) -> Run:
        """Let participants send one message each, in turn, until there are as many as asked for.

        Their steps are as long as in the round that follows on the stage, however messages are numbered. At the stage
        `training` whole rounds are played instead, from each moment on, and the parameters that follow on them are
        handed out.
        """
        data = self.data.load()
        task = defence.on_agree(self.task(data, observation.seed))
        truths: dict[MessageKey, GroundTruth] = {}
        clients: list[Client] = []
        transcript: list[Message] = []

        def restore_parties(stage: str) -> tuple[Server, list[Party]]:
            snapshot = _on(task.device, training.snapshots[stage])
            clients[:] = self.clients(task, data, defence, observation.seed, snapshot.memories, observation.batch_size)
            parties = [watch(seat, enter, truths) for seat in _seats(clients)]
            return _server(task, snapshot.parameters, self._audit_protocol, observation.seed), parties

        if observation.stage == "training":
            self._require_own_protocol()
            for number, rounds in self.rounds_per_moment(observation.victims).items():
                transcript += self._rounds(*restore_parties(moment(number)), truths, self.spread()[number], rounds)
        else:
            server, parties = restore_parties(observation.stage)
            for client in clients:
                client.optimiser = client.optimiser.at(self.rounds_before(observation.stage))
            transcript += self._messages(server, parties, truths, observation)
        return Run(
            transcript=tuple(transcript),
            public=task,
            defence=defence,
            truths=truths,
            locals={client.name: client.local for client in clients},
            auxiliary=data.test.to(task.device),
            notes=largest(client.local.notes for client in clients),
        )

    def rounds_per_moment(self, victims: int) -> dict[int, int]:
        """Return how many rounds follow each moment, by its number, for so many messages at the stage `training`."""
        per_round = 1 if self.protocol.aggregation == "secure" else self.participants
        return self.continuations(max(1, victims // per_round))

    def _rounds(
        self, server: Server, parties: list[Party], truths: dict[MessageKey, GroundTruth], first: int, rounds: int
    ) -> list[Message]:
        """Play rounds, and hand out what came of the last."""
        transcript: list[Message] = []
        for number in range(first, first + rounds):
            messages = self.protocol.round(server, parties, number)
            if self.protocol.aggregation == "secure" and (parts := take_truth(parties, number, truths)):
                truths[messages[-1].key] = join_truth(parts, messages[-1], None)
            transcript += messages
        return transcript + [server.ask(party.name, first + rounds) for party in parties]

    def _messages(
        self, server: Server, parties: list[Party], truths: dict[MessageKey, GroundTruth], observation: Observation
    ) -> list[Message]:
        # Rounds count on from the training run's, so that no stream is used twice.
        transcript: list[Message] = []
        if self._audit_protocol.aggregation == "secure":
            owned: Batch | None = None
            for number in range(self.rounds, self.rounds + observation.victims):
                messages, _ = self._audit_protocol.collect(server, parties, number)
                if parts := take_truth(parties, number, truths):
                    # What everybody owns is the same in all rounds: one copy of it serves all.
                    owned = owned or join_owned(parts)
                    truths[messages[-1].key] = join_truth(parts, messages[-1], owned)
                transcript += messages
            return transcript
        for victim in range(observation.victims):
            party = parties[victim % len(parties)]
            ask = server.ask(party.name, self.rounds + victim // len(parties))
            transcript += [ask, party.respond(ask)]
        return transcript

    def clients(
        self,
        task: Task,
        data: Data,
        defence: Defence,
        seed: int,
        memories: Mapping[str, Memory] | None = None,
        batch_size: int | None = None,
    ) -> list[Client]:
        """Return the honest participants, each with its part of the data and its own Local.

        A `batch_size` is given by an audit that asks for messages of such batches; without it they are the participants
        of a training run.
        """
        parts = self.parts(data, seed)
        size = batch_size or self.batch_size
        if batch_size and min(map(len, parts)) < size:
            raise InvalidValue(
                f"The batch size must be at most {min(map(len, parts))}, what the smallest participant owns. Got "
                f"{size} instead."
            )
        kept = memories or {}
        return [
            self.client(number, task, data.train.take(part), defence, seed, kept.get(f"client-{number}"), batch_size)
            for number, part in enumerate(parts)
        ]

    def parts(self, data: Data, seed: int) -> Sequence[Tensor]:
        """Return the positions of the training examples that each participant owns."""
        return self.partition.split(data.train.labels, self.participants, stream(seed, "partition"))

    def client(
        self,
        number: int,
        task: Task,
        owned: Batch,
        defence: Defence,
        seed: int,
        memory: Memory | None = None,
        batch_size: int | None = None,
        key: SecretKey | None = None,
    ) -> Client:
        """Return one honest participant with its data.

        It has its memory if it took part before, and a key if its messages really leave.
        """
        size, name = batch_size or self.batch_size, f"client-{number}"
        bound = None if key is None else bind_key(key, name, defence)
        protocol = self.protocol if batch_size is None else self._audit_protocol
        return Client(
            name=name,
            public=task,
            data=owned.to(task.device),
            defence=defence,
            local=Local(name, seed, memory=copy.deepcopy(memory or {}), key=bound),
            batch_size=size,
            local_steps=protocol.steps(len(owned), size),
            optimiser=protocol.optimiser,
            shares=protocol.shares,
            schedule=self.schedule,
            sharing=protocol.sharing,
            keep_moments=protocol.keeps_moments,
            batching=self._batching(defence) if batch_size is None else "attacked",
        )

    @property
    def _audit_protocol(self) -> Protocol:
        """The protocol of the messages that an audit asks for."""
        return self.observed or self.protocol

    def _require_own_protocol(self) -> None:
        """Refuse rounds of the training run under another protocol than its own."""
        if self.observed is not None:
            raise InvalidValue(
                "The stage `training` shows the messages of the training run itself. Leave out `observed`, or name "
                "another stage."
            )

    def _batching(self, defence: Defence) -> Batching:
        """Return how batches are drawn in training; a schedule with reasons of its own keeps its way."""
        return "poisson" if defence.wants_poisson and isinstance(self.schedule, Shuffled) else "schedule"


def _require_normalisable(task: Task, inputs: Tensor) -> None:
    """Refuse a plan of which no batch can be normalised by itself, where batch norm is in training mode."""
    running = task.model.running()
    if not running:
        return
    try:
        with torch.no_grad():
            task.training_forward(task.model.tensors(), inputs.to(task.device), running=running)
    except Refusal as refusal:
        raise InvalidValue(str(refusal)) from None


def _server(task: Task, state: Tensors, protocol: Protocol, seed: int) -> Server:
    """Return the server with a state of the model, by wire name."""
    return Server(dict(state), protocol.optimiser, seed, running=frozenset(task.public_running()))


def _snapshot(server: Server, clients: list[Client]) -> Snapshot:
    parameters = {name: tensor.clone() for name, tensor in server.parameters.items()}
    return Snapshot(parameters, {client.name: copy.deepcopy(client.local.memory) for client in clients})


def _on(device: torch.device, snapshot: Snapshot) -> Snapshot:
    """Return a snapshot whose tensors live on a device; what was stored comes back on the CPU."""

    def move(memory: Memory) -> Memory:
        values = flatten(memory).items()
        return unflatten({name: value.to(device) if isinstance(value, Tensor) else value for name, value in values})

    memories = {name: move(memory) for name, memory in snapshot.memories.items()}
    return Snapshot({name: tensor.to(device) for name, tensor in snapshot.parameters.items()}, memories)


def _seats(clients: Sequence[Client]) -> list[Seat]:
    """Return the participants' seats, each with what the others keep secret until they reveal it."""
    reveals = {client.name: client.close() for client in clients}
    known = {
        client.name: {
            f"{Knows.KEYS}/{name}/{part}": tensor
            for name, message in reveals.items()
            if message is not None and name != client.name
            for part, tensor in message.tensors.items()
        }
        for client in clients
    }
    return [Seat(one.name, one.public, one.data, one.local, one, known[one.name]) for one in clients]
