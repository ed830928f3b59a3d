"""Standalone training: what each participant would get without the others, for comparison."""

from __future__ import annotations

import dataclasses
from statistics import fmean
from typing import Literal

import torch
from pydantic import Field

from leaktight.core.defence import Defence, Undefended
from leaktight.core.errors import Refusal
from leaktight.core.message import Kind
from leaktight.core.metric import Reading
from leaktight.core.random import stream
from leaktight.core.run import Run
from leaktight.core.scenario import Content, Enter, Observation, Progress, Scenario, Snapshot, Training
from leaktight.learning.federated import Federated
from leaktight.learning.last_rounds import LastRounds
from leaktight.learning.protocol import FedAvg, Server, federate
from leaktight.statistics.interval import bootstrap


def standalone(
    scenario: Federated, seed: int, sample: int | None = None, progress: Progress | None = None
) -> list[tuple[Reading, ...]]:
    """Train participants of a scenario alone, and return each one's utility.

    Each takes as many steps as in the federation.

    Args:
        scenario: the federation.
        seed: what all randomness derives from.
        sample: how many participants are trained, the first ones; None trains all.
        progress: called after each round of each participant.
    """
    data = scenario.data.load()
    protocol = FedAvg(optimiser=scenario.protocol.optimiser, local_steps=scenario.protocol.local_steps)
    clients = scenario.clients(scenario.task(data, seed), data, Undefended(), seed)[:sample]
    readings: list[tuple[Reading, ...]] = []
    for client in clients:
        alone = dataclasses.replace(client, shares=Kind.UPDATE)
        server = Server(alone.task.public_state(), running=frozenset(alone.task.public_running()))
        last = LastRounds(server, scenario.rounds, scenario.averaged)

        def after(played: int) -> None:
            if progress is not None:
                progress(len(readings) * scenario.rounds + played, len(clients) * scenario.rounds)

        federate(protocol, server, [alone], scenario.rounds, last.then(after))
        readings.append(last.utility(alone.task, data.test.to(alone.task.device)))
    return readings


class Standalone(Scenario):
    """The participants of a federation, each on its own: how good models are without sharing.

    Its utility is the mean over participants, with an interval from resampling them. No message is ever sent in
    training; what can be observed is what the federation would send at its start.

    Args:
        federation: who the participants are, what they own, and how long they train.
        sample: how many of them are trained, the first ones, at least 1; None trains all.
    """

    kind: Literal["standalone"] = "standalone"
    federation: Federated
    sample: int | None = Field(None, ge=1)

    @property
    def untrained(self) -> bool:
        """Whether there are no rounds."""
        return self.federation.rounds == 0

    def content(self, seed: int) -> Content:
        """That of the federation."""
        return self.federation.content(seed)

    def train(
        self, defence: Defence, seed: int, progress: Progress | None = None, enter: Enter | None = None
    ) -> Training:
        """Train participants one after the other."""
        if enter is not None:
            raise Refusal("Who trains alone meets nobody, so no attacker can sit in. Use an attack that only observes.")
        if not isinstance(defence, Undefended):
            raise Refusal(f"Who trains alone sends nothing, so {defence.kind} has nothing to do. Compare with `none`.")
        each = [readings[0] for readings in standalone(self.federation, seed, self.sample, progress)]
        values = torch.tensor([reading.value for reading in each], dtype=torch.float64)
        low, high = bootstrap(values, stream(seed, "standalone", "interval"))
        mean = Reading(
            name="accuracy",
            value=fmean(values.tolist()),
            low=low,
            high=high,
            n=len(each),
            chance=each[0].chance,
            each=tuple(values.tolist()),
        )
        task = self.federation.task(self.federation.data.load(), seed)
        return Training({"initial": Snapshot(task.public_state())}, (mean,))

    def observe(
        self, training: Training, defence: Defence, observation: Observation, enter: Enter | None = None
    ) -> Run:
        """Let participants send what they would send at the start of the federation."""
        return self.federation.observe(training, defence, observation, enter)
