"""Protocols: who sends what to whom in a round, and what the server makes of it."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar, Literal

from pydantic import Field, SerializeAsAny
from torch import Tensor

from leaktight.core.message import Kind, Message
from leaktight.core.party import Party
from leaktight.core.value import Kinded
from leaktight.learning.aggregate import mean, secure_sum
from leaktight.learning.checkpoint import follow
from leaktight.learning.optimiser import Optimiser, Sgd

SERVER = "server"


@dataclasses.dataclass
class Server:
    """The shared parameters and the optimiser that moves them by gradients."""

    parameters: dict[str, Tensor]
    optimiser: Optimiser = dataclasses.field(default_factory=Sgd)

    def __post_init__(self) -> None:
        self.parameters = {name: tensor.detach().clone() for name, tensor in self.parameters.items()}
        self._steps = self.optimiser.over(self.parameters.values())
        self._copy: dict[str, Tensor] = {}

    def ask(self, receiver: str, round: int, facts: Mapping[str, float] | None = None) -> Message:
        """Return the message that hands out the current parameters; as long as they stay, all are handed one copy.

        Args:
            receiver: whom they are for.
            round: which round begins.
            facts: what is public about the round.
        """
        if not self._copy:
            self._copy = {name: tensor.clone() for name, tensor in self.parameters.items()}
        return Message(Kind.PARAMETERS, SERVER, receiver, round, self._copy, facts or {})

    def follow(self, gradient: dict[str, Tensor], round: int) -> None:
        """Take one optimiser step along a gradient, of the size that a round has; parameters it has nothing for stay as they are."""
        self._copy = {}
        for name, tensor in self.parameters.items():
            tensor.grad = gradient.get(name)
        follow(self._steps, self.optimiser, round)

    def add(self, update: dict[str, Tensor]) -> None:
        """Add an update to the parameters; those it has nothing for stay as they are."""
        self._copy = {}
        for name in self.parameters.keys() & update.keys():
            self.parameters[name].add_(update[name])


class Protocol(Kinded):
    """What happens in one round of a federation.

    Args:
        optimiser: takes the local steps; under `fedsgd` the server's step.
        local_steps: steps between two messages, at least 1.
        aggregation: `mean` counts all participants alike, `weighted` by their examples, `secure` shows the server the mean only.
    """

    family: ClassVar[str] = "protocol"
    shares: ClassVar[Kind] = Kind.UPDATE
    optimiser: SerializeAsAny[Optimiser] = Sgd()
    local_steps: int = Field(1, ge=1)
    aggregation: Literal["mean", "weighted", "secure"] = "mean"

    @abc.abstractmethod
    def round(self, server: Server, parties: Sequence[Party], number: int) -> list[Message]:
        """Play one round and return what crossed the boundary."""

    def collect(self, server: Server, parties: Sequence[Party], number: int) -> tuple[list[Message], dict[str, Tensor]]:
        """Ask every party at once; return the transcript and the aggregate."""
        facts = {"participants": float(len(parties))} if self.aggregation == "mean" else {}
        if self.shares is Kind.GRADIENT:
            facts |= self.optimiser.at(number).facts()
        asks = [server.ask(party.name, number, facts) for party in parties]
        replies = [party.respond(ask) for party, ask in zip(parties, asks, strict=True)]
        if self.aggregation == "secure":
            total = secure_sum(replies)
            return [server.ask(total.sender, number), total], dict(total.tensors)
        pairs = [message for pair in zip(asks, replies, strict=True) for message in pair]
        return pairs, mean(replies, weighted=self.aggregation == "weighted")


class FedSGD(Protocol):
    """Every participant sends the gradient of one batch; the server steps along their mean.

    Differs from the paper: every participant takes part in every round.

    References: McMahan et al. 2017, Communication-Efficient Learning of Deep Networks from Decentralized Data.
    """

    kind: Literal["fedsgd"] = "fedsgd"
    shares: ClassVar[Kind] = Kind.GRADIENT
    local_steps: Literal[1] = 1

    def round(self, server: Server, parties: Sequence[Party], number: int) -> list[Message]:
        """Collect gradients and follow their mean."""
        messages, gradient = self.collect(server, parties, number)
        server.follow(gradient, number)
        return messages


class FedAvg(Protocol):
    """Every participant takes several local steps and sends its update; the server adds their mean.

    Differs from the paper: every participant takes part in every round; local work is counted in steps, not epochs, so
    that participants of different size do equally many.

    References: McMahan et al. 2017, Algorithm 1.
    """

    kind: Literal["fedavg"] = "fedavg"
    local_steps: int = Field(4, ge=1)

    def round(self, server: Server, parties: Sequence[Party], number: int) -> list[Message]:
        """Collect updates and add their mean."""
        messages, update = self.collect(server, parties, number)
        server.add(update)
        return messages


class RoundRobin(Protocol):
    """Participants take turns: each downloads what the one before it left, trains, and its update is applied at once.

    Differs from the paper: everything is downloaded; what is uploaded is a defence's business (`top_k`).

    References: Shokri and Shmatikov 2015, Privacy-Preserving Deep Learning.
    """

    kind: Literal["round_robin"] = "round_robin"
    local_steps: int = Field(4, ge=1)
    aggregation: Literal["mean"] = "mean"

    def round(self, server: Server, parties: Sequence[Party], number: int) -> list[Message]:
        """Let one participant after the other update the server."""
        messages = []
        for party in parties:
            ask = server.ask(party.name, number)
            reply = party.respond(ask)
            server.add(dict(reply.tensors))
            messages += [ask, reply]
        return messages


def federate(
    protocol: Protocol,
    server: Server,
    parties: Sequence[Party],
    rounds: int,
    after: Callable[[int], None] | None = None,
) -> None:
    """Play rounds 0 to `rounds` - 1; `after` is called with the number of rounds played."""
    for number in range(rounds):
        protocol.round(server, parties, number)
        if after is not None:
            after(number + 1)
