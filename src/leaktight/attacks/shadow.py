"""Shadow messages: what participants with examples of the attacker's choice would have sent."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterator, Mapping, Sequence

import torch
from torch import Tensor

from leaktight.attacks.auxiliary_gradients import batch_gradients
from leaktight.core.defence import Defence, Undefended
from leaktight.core.errors import Refusal
from leaktight.core.local import Local
from leaktight.core.message import Kind, Message, Tensors
from leaktight.core.random import Stream
from leaktight.core.run import all_but
from leaktight.core.task import Batch, Task
from leaktight.core.threat import Exchange, View
from leaktight.learning.client import Client
from leaktight.learning.optimiser import Adam, Optimiser, Sgd


@dataclasses.dataclass(frozen=True)
class Moment:
    """Parameters that were handed out, and the form of the messages that answered them.

    Args:
        parameters: what was handed out, by wire name.
        kind: a gradient or an update.
        parties: how many participants' messages are averaged in one; 1 for a message that is seen by itself.
        examples: how many examples of each participant are behind it.
        facts: what is public of an update: local steps, learning rate, momentum.
    """

    parameters: Tensors = dataclasses.field(repr=False)
    kind: Kind
    parties: int
    examples: int
    facts: Mapping[str, float] = dataclasses.field(default_factory=dict)

    @property
    def local_steps(self) -> int:
        """How many steps each participant took."""
        return int(self.facts.get("local_steps", 1))

    @property
    def optimiser(self) -> Optimiser:
        """What took them."""
        rate = self.facts.get("learning_rate", 1.0)
        if self.facts.get("adaptive"):
            return Adam(learning_rate=rate)
        return Sgd(learning_rate=rate, momentum=self.facts.get("momentum", 0.0))


def moments(view: View, exchanges: Sequence[Exchange]) -> list[Moment]:
    """Return every moment that messages in view answer, once: parameters are told apart by their values.

    Raises:
        Refusal: an update came from an unknown number of local steps.

    Example:
        >>> from leaktight.core.threat import ThreatModel
        >>> from leaktight.testing import toy_run
        >>> view = ThreatModel().view(toy_run(rounds=3, batch_size=2))
        >>> [(moment.parties, moment.examples) for moment in moments(view, view.exchanges())]
        [(1, 2)]
    """
    return [moment for moment, _ in group_by_moment(view, exchanges)]


def group_by_moment(view: View, exchanges: Sequence[Exchange]) -> list[tuple[Moment, list[int]]]:
    """Return every moment as `moments` does, each with the places of the messages that answer it."""
    asked = {(message.receiver, message.round): message for message in view.of(Kind.PARAMETERS)}
    groups: dict[tuple[object, ...], tuple[Moment, list[int]]] = {}
    prints: dict[tuple[int, ...], str] = {}
    for place, exchange in enumerate(exchanges):
        sent = exchange.sent
        if sent.kind is Kind.UPDATE and "local_steps" not in sent.facts:
            raise Refusal(
                "The steps behind an update can be played only by an attacker who knows them. Add `local_steps` to "
                "`knows` in the threat model."
            )
        others = sent.sender == all_but(view.seat)
        parties = (
            int(asked[view.seat, sent.round].facts["participants"]) - 1
            if others
            else int(sent.facts.get("participants", 1))
        )
        facts = {
            name: sent.facts[name]
            for name in ("local_steps", "learning_rate", "momentum", "adaptive")
            if name in sent.facts
        }
        moment = Moment(exchange.parameters, sent.kind, parties, int(sent.facts["examples"]) // parties, facts)
        same = tuple(map(id, exchange.parameters.values()))
        prints[same] = prints.get(same) or _digest(exchange.parameters)
        form = (prints[same], moment.kind, parties, moment.examples, *sorted(facts.items()))
        groups.setdefault(form, (moment, []))[1].append(place)
    return list(groups.values())


def shadow_messages(
    task: Task, moment: Moment, pool: Batch, members: Tensor, rng: Stream, defence: Defence | None = None
) -> Iterator[dict[str, Tensor]]:
    r"""Yield the messages that a moment's participants would have sent for chosen examples, some at a time.

    Undefended gradients come all at once. An update, what a defence makes of a message, and what a network with batch
    norm or dropout in training mode sends is played one by one by an honest `Client` with a `Local` of the attacker's
    own: new secrets, new noise and an empty memory each time, so what a defence remembers of earlier rounds is not
    modelled.

    Args:
        task: the public task.
        moment: the parameters that they answer, and the form.
        pool: the examples.
        members: for each message a row of positions in the pool, participant after participant.
        rng: where a defence's randomness, and the order of local steps, come from.
        defence: what all participants do about leakage, as far as the attacker knows; None for nothing.

    Yields:
        Messages stacked along the first dimension.
    """
    plain = not (task.model.batch_norms() or task.model.drops)
    if plain and moment.kind is Kind.GRADIENT and (defence is None or isinstance(defence, Undefended)):
        for gradients in batch_gradients(task, task.model_parameters(moment.parameters), pool, members):
            yield task.outward(gradients)
        return
    for row in members:
        sent = [
            _play(task, moment, pool.take(own.to(pool.labels.device)), rng, defence or Undefended())
            for own in torch.split(row, moment.examples)
        ]
        yield {name: torch.stack([each[name] for each in sent]).mean(0, keepdim=True) for name in sent[0]}


def _play(task: Task, moment: Moment, data: Batch, rng: Stream, defence: Defence) -> Tensors:
    """Return what one participant sends that owns exactly the examples of one message."""
    client = Client(
        name="attacker",
        public=task,
        data=data,
        defence=defence,
        local=Local("attacker", seed=int(torch.randint(1 << 62, (), generator=rng))),
        batch_size=moment.examples // moment.local_steps,
        local_steps=moment.local_steps,
        optimiser=moment.optimiser,
        shares=moment.kind,
    )
    return client.respond(Message(Kind.PARAMETERS, "server", client.name, 0, moment.parameters)).tensors


def _digest(parameters: Tensors) -> str:
    """Return what two sets of parameters have in common only if all their values are the same."""
    digest = hashlib.sha256()
    for name in sorted(parameters):
        digest.update(name.encode())
        digest.update(parameters[name].detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()
