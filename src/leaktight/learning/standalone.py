"""Standalone training: what each participant would get without the others, for comparison."""

from __future__ import annotations

import dataclasses

from leaktight.core.defence import Undefended
from leaktight.core.message import Kind
from leaktight.core.metric import Reading
from leaktight.learning.evaluate import utility
from leaktight.learning.federated import Federated
from leaktight.learning.protocol import FedAvg, Server, federate


def standalone(scenario: Federated, seed: int) -> list[tuple[Reading, ...]]:
    """Train each participant of a scenario alone, for as many steps as it takes in the federation; return each one's utility."""
    data = scenario.data.load()
    found = []
    protocol = FedAvg(optimiser=scenario.protocol.optimiser, local_steps=scenario.protocol.local_steps)
    for client in scenario.clients(scenario.task(data, seed), data, Undefended(), seed):
        alone = dataclasses.replace(client, shares=Kind.UPDATE)
        server = Server(alone.task.public_parameters())
        federate(protocol, server, [alone], scenario.rounds)
        found.append(utility(alone.task, alone.task.named(server.parameters), data.test.to(alone.task.device)))
    return found
