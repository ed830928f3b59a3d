"""Protocols: who sends what to whom in a round, and what the server makes of it."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, ClassVar, Literal

import torch
from pydantic import Field, SerializeAsAny
from torch import Tensor

from leaktight.core.message import Kind, Message
from leaktight.core.party import Party
from leaktight.core.random import stream
from leaktight.core.training_mode import VARIANCE
from leaktight.core.value import Registered
from leaktight.learning.aggregate import mean, secure_sum
from leaktight.learning.checkpoint import take_step
from leaktight.learning.collaborative import Choice, Sharing
from leaktight.learning.optimiser import Optimiser, Sgd

SERVER = "server"
Gather = Callable[[Sequence[Party], Sequence[Message]], list[Message]]
"""Hands each party its message and returns their answers, in the order of the parties."""


def in_turn(parties: Sequence[Party], asks: Sequence[Message]) -> list[Message]:
    """Ask one party after the other, in this process."""
    return [party.respond(ask) for party, ask in zip(parties, asks, strict=True)]


@dataclasses.dataclass
class Server:
    """The shared parameters and the optimiser that moves them by gradients.

    Args:
        parameters: by wire name.
        optimiser: takes the steps along gradients.
        seed: what a protocol's draws derive from.
        gather: how parties are asked; those on other machines can all work at the same time.
        running: which of the parameters are running statistics of batch norm: no gradient moves them. Participants send
            by how much they changed, and the mean of that is added.
    """

    parameters: dict[str, Tensor]
    optimiser: Optimiser = dataclasses.field(default_factory=Sgd)
    seed: int = 0
    gather: Gather = dataclasses.field(default=in_turn, repr=False)
    running: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        self.parameters = {name: tensor.detach().clone() for name, tensor in self.parameters.items()}
        self._steps = self.optimiser.over(
            [tensor for name, tensor in self.parameters.items() if name not in self.running]
        )
        self._copy: dict[str, Tensor] = {}

    def ask(self, receiver: str, round: int, facts: Mapping[str, float] | None = None) -> Message:
        """Return the message that hands out the current parameters; one copy serves all until they change.

        Args:
            receiver: whom they are for.
            round: which round begins.
            facts: what is public about the round.
        """
        if not self._copy:
            self._copy = {name: tensor.clone() for name, tensor in self.parameters.items()}
        return Message(Kind.PARAMETERS, SERVER, receiver, round, self._copy, facts or {})

    def follow(self, gradient: dict[str, Tensor], round: int) -> None:
        """Take one optimiser step along a gradient, of this round's size.

        Parameters without a gradient stay as they are.
        """
        self._copy = {}
        for name, tensor in self.parameters.items():
            tensor.grad = None if name in self.running else gradient.get(name)
        take_step(self._steps, self.optimiser, round)
        self.add({name: gradient[name] for name in self.running & gradient.keys()})

    def add(self, update: dict[str, Tensor]) -> None:
        """Add an update to the parameters; those it has nothing for stay as they are."""
        self._copy = {}
        for name in self.parameters.keys() & update.keys():
            self.parameters[name].add_(update[name])
            # Noise may push a variance below zero, and nothing can be divided by its root.
            if name in self.running and name.endswith(VARIANCE):
                self.parameters[name].clamp_(min=0)


class Protocol(Registered):
    """What happens in one round of a federation.

    Args:
        optimiser: takes the local steps; under `fedsgd` the server's step.
        local_steps: steps between two messages, at least 1.
        aggregation: `mean` counts all participants alike, `weighted` by their examples, `secure` shows the server the
            mean only.
    """

    family: ClassVar[str] = "protocol"
    shares: ClassVar[Kind] = Kind.UPDATE
    optimiser: SerializeAsAny[Optimiser] = Sgd()
    local_steps: int = Field(1, ge=1)
    aggregation: Literal["mean", "weighted", "secure"] = "mean"

    @property
    def sharing(self) -> Sharing:
        """Which part of the parameters participants take over, and which part of their updates they hand in.

        Here it is all of both.
        """
        return Sharing()

    @property
    def keeps_moments(self) -> bool:
        """Whether what a participant's optimiser remembers lasts from round to round. Here it does not."""
        return False

    def steps(self, examples: int, batch_size: int) -> int:
        """Return how many steps a participant with so many examples and this batch size takes between two messages."""
        return self.local_steps

    @abc.abstractmethod
    def round(self, server: Server, parties: Sequence[Party], number: int) -> list[Message]:
        """Play one round and return what crossed the boundary."""

    def collect(self, server: Server, parties: Sequence[Party], number: int) -> tuple[list[Message], dict[str, Tensor]]:
        """Ask every party at once; return the transcript and the aggregate."""
        facts = {"participants": float(len(parties))} if self.aggregation == "mean" else {}
        if self.shares is Kind.GRADIENT:
            facts |= self.optimiser.at(number).facts()
        asks = [server.ask(party.name, number, facts) for party in parties]
        replies = server.gather(parties, asks)
        if self.aggregation == "secure":
            total = secure_sum(replies)
            return [server.ask(total.sender, number), total], dict(total.whole())
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
    r"""Participants take turns: each downloads what the one before it left, trains, and its update is applied at once.

    This is the collaborative framework with a parameter server. What is at its default is not written down in settings.

    Args:
        optimiser: takes the local steps.
        local_steps: steps between two messages, at least 1.
        order: `in_turn` by name in every round, or `random`, drawn anew for each round.
        download: \(\theta_d\), the share of its parameters that a participant replaces by the server's, in (0, 1]:
            those that others changed most since it last had them; the rest stays its own.
        upload: \(\theta_u\), the share of its changes that a participant hands in, in (0, 1].
        choice: whether those are its `largest` changes or `random` ones.
        clip: \(\gamma\), what each entry of an update is bounded to, above 0; None bounds nothing.
        local_epochs: how many times a participant passes over its own data between two messages, in place of
            `local_steps`.
        moments: whether the momentum or Adam's moments of a participant start `anew` in each of its turns, or are
            `kept`, by the participant, from its last one.

    Example:
        >>> RoundRobin(local_epochs=2).steps(examples=70, batch_size=32), RoundRobin(local_steps=3).steps(70, 32)
        (4, 3)
        >>> [RoundRobin(order="random").turns(3, seed=0, number=number) for number in range(2)]
        [[1, 2, 0], [2, 0, 1]]

    Differs from the paper: no participant starts before the one before it is done (no asynchronous order). A defence
    acts on what is left after choice and bound. The public code of class keys has one optimiser for all participants,
    whose moments know of everybody's steps; here each keeps its own. What an examples' pass does not fill a batch with
    is left out of it. More in `Sharing`.

    References: Shokri and Shmatikov 2015, Privacy-Preserving Deep Learning, section 5; Sariyildiz et al. 2020, Key
    Protected Classification for Collaborative Learning, section 3.1 and Algorithm 1.
    """

    kind: Literal["round_robin"] = "round_robin"
    local_steps: int = Field(4, ge=1)
    aggregation: Literal["mean"] = "mean"
    # Left out where they are at their defaults, so that settings of before they were there keep their keys.
    order: Literal["in_turn", "random"] = Field("in_turn", exclude_if=lambda order: order == "in_turn")
    download: float = Field(1.0, gt=0, le=1, exclude_if=lambda share: share == 1)
    upload: float = Field(1.0, gt=0, le=1, exclude_if=lambda share: share == 1)
    choice: Choice = Field("largest", exclude_if=lambda choice: choice == "largest")
    clip: Annotated[float, Field(gt=0)] | None = Field(None, exclude_if=lambda clip: clip is None)
    local_epochs: Annotated[int, Field(ge=1)] | None = Field(None, exclude_if=lambda epochs: epochs is None)
    moments: Literal["anew", "kept"] = Field("anew", exclude_if=lambda moments: moments == "anew")

    @property
    def keeps_moments(self) -> bool:
        """Whether moments are kept."""
        return self.moments == "kept"

    @property
    def sharing(self) -> Sharing:
        """The shares and the bound of this protocol."""
        return Sharing(self.download, self.upload, self.choice, self.clip)

    def steps(self, examples: int, batch_size: int) -> int:
        """Return the local steps, or those of whole passes over a participant's data."""
        if self.local_epochs is None:
            return self.local_steps
        return self.local_epochs * (examples // min(batch_size, examples))

    def turns(self, parties: int, seed: int, number: int) -> list[int]:
        """Return in which order participants take their turns in a round."""
        if self.order == "in_turn":
            return list(range(parties))
        return [int(at) for at in torch.randperm(parties, generator=stream(seed, "turns", number))]

    def round(self, server: Server, parties: Sequence[Party], number: int) -> list[Message]:
        """Let one participant after the other update the server."""
        messages = []
        for party in (parties[at] for at in self.turns(len(parties), server.seed, number)):
            # Each answer counts whole, as the mean of one.
            ask = server.ask(party.name, number, {"participants": 1.0})
            [reply] = server.gather([party], [ask])
            server.add(dict(reply.whole()))
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
