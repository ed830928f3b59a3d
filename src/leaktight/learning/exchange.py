"""The exchange of split learning: messages back and forth, and what an audit records besides them."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable

import torch
from torch import nn

from leaktight.core.local import Memory
from leaktight.core.message import Message
from leaktight.core.party import Party, Seat
from leaktight.core.run import GroundTruth, MessageKey
from leaktight.core.scenario import Enter
from leaktight.core.task import Batch, Model, Task
from leaktight.learning.feature_party import FeatureParty
from leaktight.learning.label_party import LabelParty
from leaktight.learning.task import classification


def play(
    feature: Party, label: Party, opening: Message, steps: int, after: Callable[[int, tuple[Message, Message]], None]
) -> None:
    """Exchange messages for some steps, until both parties have applied the last.

    `after` gets the steps played and the messages.
    """
    if not steps:
        return
    activations = feature.respond(opening)
    for played in range(1, steps + 1):
        gradient = label.respond(activations)
        following = feature.respond(gradient)
        after(played, (activations, gradient))
        activations = following


def public_task(bottom: nn.Module, shape: tuple[int, ...], classes: int) -> Task:
    """Return what both parties know: the layers before the cut, without their weights, and the shape of the task.

    The task's `model.body` is the bottom with every parameter at zero; of the top nothing is public.
    """
    blank = copy.deepcopy(bottom)
    with torch.no_grad():
        for parameter in blank.parameters():
            parameter.zero_()
    return classification(Model(blank, nn.Identity()), shape, classes)


@dataclasses.dataclass
class Watch:
    """Records what an audit needs besides the messages, out of reach of both parties and of whoever takes their seats.

    Args:
        public: what both parties know.
        feature: the honest feature party.
        label: the honest label party.
        truths: both sides of each gradient that the label party sent.
        seen: for each step what the feature party computed its activations from: `inputs` and the bottom's
            `parameters`; and by the public order which of its `rows` they are, and in which `pass`.
    """

    public: Task
    feature: FeatureParty
    label: LabelParty
    truths: dict[MessageKey, GroundTruth] = dataclasses.field(default_factory=dict)
    seen: Memory = dataclasses.field(default_factory=dict)

    def parties(self, enter: Enter | None = None) -> tuple[Party, Party]:
        """Return who plays: the honest parties, watched, unless somebody takes a seat."""
        feature, label = self.feature, self.label
        # It has no labels; the place for them says so.
        known = Batch(feature.inputs, torch.full((len(feature.inputs),), -1, device=feature.inputs.device))
        return (
            _occupant(self._features, Seat(feature.name, self.public, known, feature.local, feature), enter),
            _occupant(self._labels, Seat(label.name, self.public, label.data, label.local, label), enter),
        )

    def _features(self, message: Message) -> Message:
        party = self.feature
        activations = party.respond(message)
        parameters = {name: tensor.detach().clone() for name, tensor in party.bottom.named_parameters()}
        self.seen[str(activations.round)] = {
            "inputs": party.rows(activations.round),
            "parameters": parameters,
            "rows": party.order.at(activations.round).clone(),
            "pass": float(party.order.pass_of(activations.round)),
        }
        return activations

    def _labels(self, message: Message) -> Message:
        party = self.label
        answer = party.answer(message)
        plain = answer.clean if answer.used is answer.raw else None
        self.truths[answer.sent.key] = GroundTruth(
            self.public,
            answer.raw,
            answer.used,
            answer.clean,
            answer.sent,
            plain,
            party.data,
            answer.losses,
            bound=party.defence.label_bound,
        )
        return answer.sent


@dataclasses.dataclass(frozen=True)
class _WatchedParty:
    """An honest party that is watched."""

    honest: Party
    respond: Callable[[Message], Message]

    @property
    def name(self) -> str:
        return self.honest.name

    def close(self) -> Message | None:
        return self.honest.close()


def _occupant(watched: Callable[[Message], Message], seat: Seat, enter: Enter | None) -> Party:
    party = enter(seat) if enter else seat.honest
    return _WatchedParty(seat.honest, watched) if party is seat.honest else party
