"""The split scenario: a feature party and a label party train one model that is cut in two."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, Self

import torch
from pydantic import Field, SerializeAsAny, model_validator
from torch import Tensor

from leaktight.core.defence import Defence, Undefended
from leaktight.core.device import DeviceName, device_of
from leaktight.core.draws import PublicSeed, Root
from leaktight.core.errors import InvalidValue, Refusal
from leaktight.core.local import Local
from leaktight.core.message import Message
from leaktight.core.metric import Quantity, Reading
from leaktight.core.random import seed_of
from leaktight.core.run import Run, largest
from leaktight.core.scenario import Enter, Observation, Progress, Snapshot, Training
from leaktight.core.task import Batch
from leaktight.data.columns import Columns
from leaktight.data.source import Data, Source
from leaktight.learning.boundary import FEATURE_PARTY, LABEL_PARTY
from leaktight.learning.evaluate import accuracy_reading, hits
from leaktight.learning.exchange import Watch, agreed, play
from leaktight.learning.feature_party import FeatureParty
from leaktight.learning.label_party import LabelParty
from leaktight.learning.optimiser import Adam, Optimiser
from leaktight.learning.order import Order
from leaktight.learning.staged import Staged, moment
from leaktight.models.halves import Halves, Statistics, halves
from leaktight.models.network import Network
from leaktight.statistics.auc import delong, placements
from leaktight.statistics.outcomes import pack_ranks

PASSES_TRAINED, PASSES_SEEN = "split.passes_trained", "split.passes_seen"
"""The notes that say how often a training went through its rows, and how often the messages did that were attacked."""
MOST_NUMBERS = 2**29
"""How many numbers an observation may hold: 2 GiB, and an attacker's copy of it as much again."""


class Split(Staged):
    """A party with features and a party with labels train one network that is cut between them.

    Nothing is shared but activations and gradients at the cut; the order of examples is public. The defence under audit is the label party's.

    An observation resumes training at a stage, for as many steps as there are victims: with the training's own
    batch size it replays the very messages of that training. The stage `training` spreads the victims over `moments` that were
    kept, from the first step to near the last; with as many victims as the training has steps (`victims = "all"` in a plan) it shows every
    message of every pass, which an attacker adds up row by row.

    What the feature party knows of its own is in its memory, so a view from its seat has it: `memory["seen"][str(round)]` holds the `inputs`
    and the bottom's `parameters` of each step, the numbers of its `rows` and of the `pass` through all of them, for the order is public;
    `layer_gradients` makes the rest. `memory["initial"]` holds the parameters that the bottom began with.

    Notes: `split.passes_trained`, how often the training went through the rows, and `split.passes_seen`, how often the observed messages did.

    Args:
        data: where the examples come from.
        model: the network that is trained.
        cut: the last layer of the feature party, such as `relu3`; empty cuts before the head.
        label_party: columns that the label party holds, beside the labels, for a wide part; `*` stands for any text, as in `I*`.
        feature_party: columns that the feature party holds; empty means all that the label party does not. A column may be with both.
        optimiser: how each party's parameters follow gradients; each keeps its own moments.
        rounds: how many steps a training run takes; 0 leaves the model untrained.
        passes: in place of `rounds`, how often a training run goes through all rows; what does not fill a batch is left out of a pass.
        batch_size: examples per step, at least 2.
        moments: how many evenly spread moments of the training are kept for the stage `training`, at least 1.
        feature_defence: what the feature party does to its activations.
        normalise: whether numbers are standardised by constants of the public part of the data.
        device: where tensors live: `cpu`, `cuda`, `mps`, or `auto`.

    Example:
        >>> from leaktight.data import RareDigit
        >>> from leaktight.models import MLP
        >>> small = Split(data=RareDigit(), model=MLP(hidden=(16,)), label_party=("r0*",), rounds=20)
        >>> training = small.train(Undefended(), seed=0)
        >>> run = small.observe(training, Undefended(), Observation("end", batch_size=64, victims=1, seed=0))
        >>> [(message.kind.value, tuple(next(iter(message.tensors.values())).shape)) for message in run.transcript]
        [('activation', (64, 16)), ('cut_gradient', (64, 16))]

    Differs from the paper: Two scores with softmax in place of one logit, and each party's own optimiser in place of one for both, which
    for SGD and Adam is the same. The paper's wide part takes all features, here those columns that the label party holds.

    References:
        Gupta and Raskar, Distributed Learning of Deep Neural Network over Multiple Agents, 2018; Li et al., Label Leakage and Protection in
        Two-party Split Learning, Section 2.1 and Table 1.
    """

    kind: Literal["split"] = "split"
    data: SerializeAsAny[Source]
    model: SerializeAsAny[Network]
    cut: str = ""
    label_party: tuple[str, ...] = ()
    feature_party: tuple[str, ...] = ()
    optimiser: SerializeAsAny[Optimiser] = Adam()
    rounds: int = Field(200, ge=0)
    # Left out where steps are counted, so that scenarios of before it was there keep their keys.
    passes: int = Field(0, ge=0, exclude_if=lambda passes: not passes)
    batch_size: int = Field(256, ge=2)
    moments: int = Field(20, ge=1)
    feature_defence: SerializeAsAny[Defence] = Undefended()
    normalise: bool = True
    device: DeviceName = "cpu"

    @model_validator(mode="before")
    @classmethod
    def _one_length(cls, data: Any) -> Any:
        if not isinstance(data, dict) or not data.get("passes"):
            return data
        if data.get("rounds"):
            raise ValueError(
                f"must have `rounds` or `passes`. Got {data['rounds']!r} and {data['passes']!r} instead; leave one out."
            )
        return {**data, "rounds": 0}

    def shorten(self, rounds: int) -> Self:
        """Return it with so many steps, in place of passes."""
        return type(self).model_validate({**dict(self), "rounds": rounds, "passes": 0})

    @property
    def length(self) -> int:
        """How many steps a training run takes: its rounds, or as many as its passes have."""
        return self.passes * self.steps_per_pass() if self.passes else self.rounds

    @property
    def untrained(self) -> bool:
        """Whether there are no steps."""
        return not self.passes and not self.rounds

    @property
    def messages(self) -> int:
        """How many messages of a whole training can be attacked: one for each step."""
        return self.length

    def steps_per_pass(self, batch_size: int | None = None) -> int:
        """Return how many full batches the training rows make."""
        return max(1, len(self.data.load().train) // (batch_size or self.batch_size))

    def halves(self, data: Data, root: Root) -> Halves:
        """Return the model in two halves, on the device, with its initial weights."""
        ours, theirs = self.dealt(data)
        statistics = data.statistics() if self.normalise else None
        if ours is None:
            inputs: Columns | tuple[int, ...] = data.shape
        else:
            inputs = _described(data).take(ours)
        made = halves(
            self.model,
            inputs,
            data.classes,
            root.derive("model"),
            cut=self.cut,
            own=_described(data).take(theirs) if theirs else None,
            statistics=_taken(statistics, ours),
            own_statistics=_taken(statistics, theirs),
        )
        device = device_of(self.device)
        return Halves(made.bottom.to(device), made.top.to(device), made.shape)

    def parties(
        self, data: Data, defence: Defence, seed: int, batch_size: int | None = None
    ) -> tuple[FeatureParty, LabelParty]:
        """Return the two honest parties, each with its half of the model, its columns and its own Local.

        The order's seed is what both know; each Local has a seed of its own, so that neither party can draw the other's noise again. In
        an audit all of them follow from one number; parties of real life choose theirs at random.
        """
        made, device = self.halves(data, PublicSeed(seed)), device_of(self.device)
        features, own = self.held(data.train.inputs)
        count, size, public = len(data.train), batch_size or self.batch_size, seed_of(seed, "order")
        feature = FeatureParty(
            bottom=made.bottom,
            inputs=features.to(device),
            order=Order(count, size, public),
            local=Local(FEATURE_PARTY, seed_of(seed, FEATURE_PARTY, "secret")),
            optimiser=self.optimiser,
            defence=self.feature_defence,
        )
        label = LabelParty(
            top=made.top,
            labels=data.train.labels.to(device),
            order=Order(count, size, public),
            local=Local(LABEL_PARTY, seed_of(seed, LABEL_PARTY, "secret")),
            shape=made.shape,
            inputs=None if own is None else own.to(device),
            optimiser=self.optimiser,
            defence=defence,
        )
        return feature, label

    def held(self, inputs: Tensor) -> tuple[Tensor, Tensor | None]:
        """Return what the feature party and what the label party holds of rows; None for a label party without features."""
        ours, theirs = self.dealt(self.data.load())
        if ours is None:
            return inputs, None
        return inputs[:, list(ours)], inputs[:, list(theirs)] if theirs else None

    @classmethod
    def quantities(cls) -> Mapping[str, Quantity]:
        """Return what the utility of its model is measured by."""
        return {
            **super().quantities(),
            "auc": Quantity("test AUC", digits=3),
            "training_loss": Quantity("training loss"),
        }

    def train(self, defence: Defence, seed: int, progress: Progress | None = None, enter: Enter | None = None) -> Training:
        """Train all steps under the label party's defence; keep the stages, the utility on test data and the parties' notes."""
        if enter is not None:
            raise Refusal(
                "In split learning nobody can take a chair while the model is trained. Use an attack that only observes."
            )
        data = self.data.load()
        feature, label = self.parties(data, defence, seed)
        snapshots, after = self.keeper(lambda: _snapshot(feature, label), progress)
        losses: list[Tensor] = []

        def took(played: int, messages: tuple[Message, Message]) -> None:
            after(played)
            if label.last is not None:
                losses.append(label.last.loss)

        play(feature, label, label.opening(), self.length, took)
        notes = largest(party.local.notes for party in (feature, label))
        notes[PASSES_TRAINED] = self.length / self.steps_per_pass()
        return Training(snapshots, (*self.utility(feature, label, data), *_training_loss(losses)), notes)

    def utility(self, feature: FeatureParty, label: LabelParty, data: Data) -> tuple[Reading, ...]:
        """Return test AUC, for two classes, and accuracy of what the two parties can predict together."""
        features, own = self.held(data.test.inputs)
        device = device_of(self.device)
        activations = feature.features(features.to(device))
        scores = label.scores(activations, None if own is None else own.to(device)).cpu()
        return graded(scores, data.test.labels, data.classes, keep=True)

    def observe(self, training: Training, defence: Defence, observation: Observation, enter: Enter | None = None) -> Run:
        """Go on with a training from a stage, one step for each victim, and write down both sides of every gradient."""
        data = self.data.load()
        feature, label = self.parties(data, defence, observation.seed, observation.batch_size)
        public = agreed(feature.bottom, tuple(feature.inputs.shape[1:]), data.classes)
        _require_room(feature, label, observation)
        initial = {name: tensor.detach().clone() for name, tensor in feature.bottom.named_parameters()}
        watch = Watch(public, feature, label)
        chairs = watch.chairs(enter)
        transcript: list[Message] = []
        for snapshot, steps in self._starts(training, observation):
            feature.restore(snapshot.memories[feature.name])
            label.restore(snapshot.memories[label.name])
            play(*chairs, label.opening(), steps, lambda _, messages: transcript.extend(messages))
        # The last answer of the feature party is to a step that nobody observes any more.
        feature.local.memory["seen"] = {
            str(message.round): watch.seen[str(message.round)] for message in transcript if watch.seen
        }
        feature.local.memory["initial"] = initial
        notes = largest(party.local.notes for party in (feature, label))
        notes[PASSES_SEEN] = observation.victims / self.steps_per_pass(observation.batch_size)
        features, _ = self.held(data.test.inputs)
        return Run(
            transcript=tuple(transcript),
            public=public,
            defence=defence,
            inside=watch.inside,
            locals={party.name: party.local for party in (feature, label)},
            auxiliary=Batch(features, data.test.labels).to(public.device),
            notes=notes,
        )

    def _starts(self, training: Training, observation: Observation) -> Iterator[tuple[Snapshot, int]]:
        """Return where to take the training up, and for how many steps."""
        if observation.stage != "training":
            if observation.stage not in training.snapshots:
                raise InvalidValue(f"There is no stage `{observation.stage}` in split learning.")
            yield training.snapshots[observation.stage], observation.victims
            return
        for number, steps in self.continued(observation.victims).items():
            yield training.snapshots[moment(number)], steps

    def dealt(self, data: Data) -> tuple[tuple[int, ...] | None, tuple[int, ...]]:
        """Return the positions that the feature party and that the label party holds; None for images, which stay whole."""
        if len(data.shape) != 1:
            if self.label_party or self.feature_party:
                raise InvalidValue(f"The columns of split must be left out for images. Got data of shape {data.shape} instead.")
            return None, ()
        columns = _described(data)
        theirs = columns.find(self.label_party, "the label party")
        ours = columns.find(self.feature_party, "the feature party")
        if not self.feature_party:
            ours = tuple(at for at in range(len(columns)) if at not in set(theirs))
        if not ours:
            raise InvalidValue("The `label_party` of split must leave the feature party a column. Got all columns instead.")
        return ours, theirs


def graded(scores: Tensor, labels: Tensor, classes: int, keep: bool = False) -> tuple[Reading, ...]:
    """Return AUC, for two classes, and accuracy of class scores.

    Args:
        scores: one row of class scores for each example.
        labels: the true classes.
        classes: how many classes there are.
        keep: whether readings say what became of each example, for a comparison with another model on the same ones.

    Example:
        >>> [reading.name for reading in graded(torch.eye(2), torch.tensor([0, 1]), classes=2)]
        ['auc', 'accuracy']
    """
    share = accuracy_reading(hits(scores, labels), labels, keep)
    if classes != 2 or len(torch.unique(labels)) < 2:
        return (share,)
    # A model that has diverged ranks nobody.
    ranked = (scores[:, 1] - scores[:, 0]).nan_to_num(0.0, 1e30, -1e30)
    value, (low, high) = delong(ranked, labels)
    outcomes = pack_ranks(*placements(ranked, labels)) if keep else ""
    return Reading(name="auc", value=value, low=low, high=high, n=len(labels), chance=0.5, outcomes=outcomes), share


def _require_room(feature: FeatureParty, label: LabelParty, observation: Observation) -> None:
    """Refuse an observation that would not fit into memory: all its messages and the bottom's parameters are kept side by side."""
    bottom = sum(parameter.numel() for parameter in feature.bottom.parameters())
    # Activations, and the gradient before and after the defence.
    row = feature.inputs[0].numel() + 3 * math.prod(label.shape)
    size = observation.victims * (bottom + observation.batch_size * row)
    if size > MOST_NUMBERS:
        raise Refusal(
            f"An observation must hold at most {MOST_NUMBERS:,} numbers. {observation.victims} messages of {observation.batch_size} "
            f"examples hold {size:,}; take fewer `victims` or passes, smaller batches or fewer rows."
        )


def _snapshot(feature: FeatureParty, label: LabelParty) -> Snapshot:
    """Return both parties' states; nothing of split learning is public, and a message under way is made anew."""
    states = {party.name: party.state() for party in (feature, label)}
    for state in states.values():
        state.pop("sent", None)
    return Snapshot({}, states)


def _training_loss(losses: Sequence[Tensor]) -> list[Reading]:
    """Return the mean loss over the last tenth of the steps, at least one; nothing if there was no step or the model has diverged."""
    if not losses:
        return []
    last = torch.stack(list(losses))[-max(1, len(losses) // 10) :]
    return [Reading(name="training_loss", value=last.mean().item(), n=len(last))] if torch.isfinite(last).all() else []


def _described(data: Data) -> Columns:
    return data.columns or Columns.plain(data.shape[0])


def _taken(statistics: Statistics | None, positions: tuple[int, ...] | None) -> Statistics | None:
    if statistics is None or positions is None:
        return statistics
    mean, std = statistics
    return tuple(mean[at] for at in positions), tuple(std[at] for at in positions)
