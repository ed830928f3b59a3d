"""Seats: a small training run in which an active attack takes part, with a class that is easy to picture."""

from __future__ import annotations

import dataclasses

import torch

from leaktight.core.attack import Attack
from leaktight.core.defence import Defence, Undefended
from leaktight.core.local import Local
from leaktight.core.message import Kind, Message
from leaktight.core.party import Party, Seat
from leaktight.core.probe import Attempt
from leaktight.core.random import stream
from leaktight.core.run import GroundTruth, MessageKey, Run
from leaktight.core.scenario import Enter
from leaktight.core.task import Batch, Task
from leaktight.core.threat import ThreatModel
from leaktight.learning.client import Client
from leaktight.learning.optimiser import Sgd
from leaktight.learning.protocol import RoundRobin, Server
from leaktight.plans.control import among_noise
from leaktight.testing.toys import toy_task

VICTIM, ATTACKER = "client-0", "client-1"
SQUARES = (1, 8, 8)
OWNED = {VICTIM: (0, 1), ATTACKER: (2,)}
"""The classes of each participant. Of the four that the model knows, nobody owns the last."""


def squares(count: int, classes: tuple[int, ...] = (0, 1, 2), seed: int = 0) -> Batch:
    """Return images of 8x8 in which one quarter is light.

    It is the upper left in class 0, the upper right in 1, the lower left in 2.

    Example:
        >>> batch = squares(4, classes=(1,))
        >>> (batch.inputs[:, 0, :4, 4:].mean() > 0.8).item(), (batch.inputs[:, 0, 4:].mean() < 0.2).item()
        (True, True)
    """
    rng = stream(seed, "squares")
    labels = torch.tensor(classes)[torch.arange(count) % len(classes)]
    light = torch.zeros(count, 2, 2)
    light[torch.arange(count), labels // 2, labels % 2] = 1.0
    whole = light.repeat_interleave(4, 1).repeat_interleave(4, 2)[:, None]
    return Batch(0.8 * whole + 0.2 * torch.rand(count, *SQUARES, generator=rng), labels)


def active_run(
    attack: Attack, *, defence: Defence | None = None, rounds: int = 10, seed: int = 0, null: bool = False
) -> Run:
    """Return what is observed after a training run of two participants, the second of whom is the attacker.

    They take turns. One message of each is observed at the end, and of the honest one its other side.

    Args:
        attack: the attack, which gets to know what it needs.
        defence: what both do about leakage; None for nothing.
        rounds: how long they train.
        seed: what all randomness derives from.
        null: whether the honest one sends noise of the same norm in place of its updates: then there is nothing to
            learn.

    Example:
        >>> from leaktight.attacks import Analytic
        >>> run = active_run(Analytic(), rounds=1)
        >>> [message.sender for message in run.transcript], sorted(run.truths)
        (['server', 'client-0', 'server', 'client-1'], [('client-0', 1)])
    """
    defence = defence or Undefended()
    public = defence.on_agree(toy_task(seed, shape=SQUARES))
    clients = [_client(name, public, defence, seed) for name in OWNED]
    enter: Enter = Attempt(attack=attack, threat=ThreatModel(seat=ATTACKER, knows=attack.needs)).enter
    if null:
        enter = among_noise(enter, stream(seed, "null"))
    keys = {
        f"keys/{VICTIM}/{name}": tensor for name, tensor in defence.on_close(clients[0].local.scope("defence")).items()
    }
    parties: list[Party] = [
        enter(Seat(client.name, public, client.data, client.local, client, keys if client.name == ATTACKER else {}))
        for client in clients
    ]
    server, protocol = Server(public.public_parameters(), Sgd()), RoundRobin()
    for number in range(rounds):
        protocol.round(server, parties, number)
    truths: dict[MessageKey, GroundTruth] = {}
    honest = clients[0]
    # Whoever is watched sends noise in the last round too, if there is to be nothing to learn.
    watched = enter(Seat(honest.name, public, honest.data, honest.local, _WatchedParty(honest, truths)))
    transcript = protocol.round(server, [watched, parties[1]], rounds)
    return Run(
        transcript=tuple(transcript),
        public=public,
        defence=defence,
        truths=truths,
        locals={client.name: client.local for client in clients},
        auxiliary=squares(90, seed=1),
    )


def _client(name: str, public: Task, defence: Defence, seed: int) -> Client:
    data = squares(48, OWNED[name], seed=10 + int(name[-1]))
    return Client(name, public, data, defence, Local(name, seed), 16, 8, Sgd(learning_rate=0.2), Kind.UPDATE)


@dataclasses.dataclass(frozen=True)
class _WatchedParty:
    """An honest participant whose ground truth is recorded."""

    client: Client
    truths: dict[MessageKey, GroundTruth]

    @property
    def name(self) -> str:
        return self.client.name

    def respond(self, message: Message) -> Message:
        ground_truth = self.client.answer(message)
        self.truths[ground_truth.sent.key] = dataclasses.replace(
            ground_truth, owned=self.client.data, revealed=self.client.reveals()
        )
        return ground_truth.sent

    def close(self) -> None:
        return None
