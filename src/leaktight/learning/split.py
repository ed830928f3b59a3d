"""The split scenario: a feature party and a label party train one model that is cut in two."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, Self

import torch
from pydantic import Field, SerializeAsAny, model_validator
from torch import Tensor, nn

from leaktight.core.defence import Defence, Undefended
from leaktight.core.device import DeviceName, device_of
from leaktight.core.draws import PublicSeed, Root
from leaktight.core.errors import InvalidValue, Refusal
from leaktight.core.local import Local
from leaktight.core.message import Message
from leaktight.core.metric import Quantity, Reading
from leaktight.core.random import seed_of
from leaktight.core.run import Run, largest
from leaktight.core.scenario import FEW, Content, Control, Enter, Observation, Progress, Snapshot, Training
from leaktight.core.task import Batch
from leaktight.core.threat import Knows, ThreatModel
from leaktight.data.source import Data, Source
from leaktight.learning.boundary import FEATURE_PARTY, LABEL_PARTY
from leaktight.learning.column_split import ColumnSplit, columns_of
from leaktight.learning.evaluate import grade_scores
from leaktight.learning.exchange import Watch, play, public_task
from leaktight.learning.feature_party import FeatureParty
from leaktight.learning.label_party import LabelParty
from leaktight.learning.optimiser import Adam, Optimiser
from leaktight.learning.order import BatchOrder
from leaktight.learning.staged import Staged, moment
from leaktight.models.halves import Halves, halves
from leaktight.models.network import Network
from leaktight.models.wide_deep import WideDeep

PASSES_TRAINED, PASSES_SEEN = "split.passes_trained", "split.passes_seen"
"""The notes of how often a training run went through its rows, and how often the attacked messages did."""
MOST_NUMBERS = 2**29
"""How many numbers an observation may hold: 2 GiB, and an attacker's copy of it as much again."""


class Split(Staged):
    """A party with features and a party with labels train one network that is cut between them.

    Nothing is shared but activations and gradients at the cut; the order of examples is public. The defence under audit
    is the label party's.

    An observation resumes the training run at a stage, for as many steps as there are victims: with the training run's
    own batch size it replays the very messages of that training run. The stage `training` spreads the victims over
    `moments` that were kept, from the first step to near the last; with as many victims as the training run has steps
    (`victims = "all"` in a plan) it shows every message of every pass, which an attacker adds up row by row.

    What the feature party knows of its own is in its memory, so a view from its seat has it:
    `memory["seen"][str(round)]` holds the `inputs` and the bottom's `parameters` of each step, the numbers of its
    `rows` and of the `pass` through all of them, for the order is public; `layer_gradients` makes the rest.
    `memory["initial"]` holds the parameters that the bottom began with.

    Notes: `split.passes_trained`, how often the training run went through the rows, and `split.passes_seen`, how often
        the observed messages did.

    Args:
        data: where the examples come from.
        model: the network that is trained.
        cut: the last layer of the feature party, such as `relu3`; empty cuts before the head.
        label_party: columns that the label party holds, beside the labels, for a wide part; `*` stands for any text, as
            in `I*`.
        feature_party: columns that the feature party holds; empty means all that the label party does not. A column may
            be with both.
        optimiser: how each party's parameters follow gradients; each keeps its own moments.
        rounds: how many steps a training run takes; 0 leaves the model untrained.
        passes: in place of `rounds`, how often a training run goes through all rows; what does not fill a batch is left
            out of a pass.
        batch_size: examples per step, at least 2.
        moments: how many evenly spread moments of the training run are kept for the stage `training`, at least 1.
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

    Differs from the paper: Two scores with softmax in place of one logit, and each party's own optimiser in place of
    one for both, which for SGD and Adam is the same. The paper's wide part takes all features, here those columns that
    the label party holds.

    References:
        Gupta and Raskar, Distributed Learning of Deep Neural Network over Multiple Agents, 2018; Li et al., Label
        Leakage and Protection in Two-party Split Learning, Section 2.1 and Table 1.
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

    def repeats_examples(self, notes: Mapping[str, float]) -> bool:
        """Return whether a training run makes more than one pass over the rows."""
        # How many steps a pass has only the data tell, which need not be there any more.
        passes = float(self.passes) if self.passes else notes.get(PASSES_TRAINED)
        return self.rounds > 1 if passes is None else passes > 1

    def when(self, messages: int) -> tuple[float, ...]:
        """Count the steps before each message, which follow the moments that were kept."""
        try:
            starts, length, counts = self.spread(), self.length, self.continuations(messages)
        except InvalidValue:
            # How many steps there are in passes only the data tell.
            return super().when(messages)
        return tuple((starts[moment] + step) / length for moment, count in counts.items() for step in range(count))

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
        """How many messages of a whole training run can be attacked: one for each step."""
        return self.length

    def steps_per_pass(self, batch_size: int | None = None) -> int:
        """Return how many full batches the training rows make."""
        return max(1, len(self.data.load().train) // (batch_size or self.batch_size))

    def halves(self, data: Data, root: Root) -> Halves:
        """Return the model in two halves, on the device, with its initial weights."""
        columns = self.columns(data)
        statistics = data.statistics() if self.normalise else None
        cut = halves(
            self.model,
            data.shape if columns.ours is None else columns_of(data).take(columns.ours),
            data.classes,
            root.derive("model"),
            cut=self.cut,
            own=columns_of(data).take(columns.theirs) if columns.theirs else None,
            statistics=columns.of_features(statistics),
            own_statistics=columns.of_labels(statistics),
        )
        device = device_of(self.device)
        return Halves(cut.bottom.to(device), cut.top.to(device), cut.shape)

    def parties(
        self, data: Data, defence: Defence, seed: int, batch_size: int | None = None
    ) -> tuple[FeatureParty, LabelParty]:
        """Return the two honest parties, each with its half of the model, its columns and its own Local.

        The order's seed is what both know; each Local has a seed of its own, so that neither party can draw the other's
        noise again. In an audit all of them follow from one number; parties of real life choose theirs at random.
        """
        cut, device = self.halves(data, PublicSeed(seed)), device_of(self.device)
        features, own = self.divide_rows(data.train.inputs)
        count, size, public = len(data.train), batch_size or self.batch_size, seed_of(seed, "order")
        feature = FeatureParty(
            bottom=cut.bottom,
            inputs=features.to(device),
            order=BatchOrder(count, size, public),
            local=Local(FEATURE_PARTY, seed_of(seed, FEATURE_PARTY, "secret")),
            optimiser=self.optimiser,
            defence=self.feature_defence,
        )
        label = LabelParty(
            top=cut.top,
            labels=data.train.labels.to(device),
            order=BatchOrder(count, size, public),
            local=Local(LABEL_PARTY, seed_of(seed, LABEL_PARTY, "secret")),
            shape=cut.shape,
            inputs=None if own is None else own.to(device),
            optimiser=self.optimiser,
            defence=defence,
        )
        return feature, label

    def divide_rows(self, inputs: Tensor) -> tuple[Tensor, Tensor | None]:
        """Return what the feature party and what the label party holds of rows.

        A label party without features has None.
        """
        columns = self.columns(self.data.load())
        if columns.ours is None:
            return inputs, None
        return inputs[:, list(columns.ours)], inputs[:, list(columns.theirs)] if columns.theirs else None

    def columns(self, data: Data) -> ColumnSplit:
        """Return who holds which columns."""
        return ColumnSplit.of(data, self.feature_party, self.label_party)

    def content(self, seed: int) -> Content:
        """Both halves of the model, and what they make of a few test examples."""
        data = self.data.load()
        features, own = self.divide_rows(data.test.inputs[:FEW])
        inputs = (features,) if own is None else (features, own)
        return Content(_Joined(self.halves(data, PublicSeed(seed))), inputs, data.test.labels[:FEW])

    def seats(self, seeds: Sequence[int], batch_sizes: Sequence[int]) -> frozenset[str]:
        """The two parties."""
        data = self.data.load()
        if min(batch_sizes) < 2:
            raise InvalidValue(
                "The `batch_sizes` of the grid must be at least 2 in split learning, which tells examples of a batch "
                f"apart. Got {min(batch_sizes)} instead."
            )
        return frozenset(
            party.name
            for seed in seeds
            for size in batch_sizes
            for party in self.parties(data, Undefended(), seed, batch_size=size)
        )

    def control(self) -> Control:
        """Cut before the head, so that the top is linear, and leave the model untrained.

        A sure model's gradients drown in rounding.

        Below a linear top every cut gradient is (p - y) times one vector: its cosine with a known positive's is 1 or
        -1. A table with categories is for embeddings alone, and below its head Wide & Deep is as good as a plain
        network.
        """
        model = self.model if isinstance(self.model, WideDeep) else {"kind": "mlp"}
        plain = {"model": model, "cut": "", "rounds": 0, "passes": 0, "moments": 1, "feature_defence": Undefended()}
        threat = ThreatModel(seat=FEATURE_PARTY, knows=frozenset({Knows.HINTS}))
        return Control(Split.model_validate({**dict(self), **plain}), "direction", threat, self.batch_size)

    @classmethod
    def quantities(cls) -> Mapping[str, Quantity]:
        """Return what the utility of its model is measured by."""
        return {
            **super().quantities(),
            "auc": Quantity("test AUC", digits=3),
            "training_loss": Quantity("training loss"),
        }

    def train(
        self, defence: Defence, seed: int, progress: Progress | None = None, enter: Enter | None = None
    ) -> Training:
        """Train all steps under the label party's defence.

        Keep the stages, the utility on test data and the parties' notes.
        """
        if enter is not None:
            raise Refusal(
                "In split learning nobody can take a seat while the model is trained. Use an attack that only observes."
            )
        data = self.data.load()
        feature, label = self.parties(data, defence, seed)
        snapshots, after = self.keeper(lambda: _snapshot(feature, label), progress)
        losses: list[Tensor] = []

        def after_step(played: int, messages: tuple[Message, Message]) -> None:
            after(played)
            if label.last is not None:
                losses.append(label.last.loss)

        play(feature, label, label.opening(), self.length, after_step)
        notes = largest(party.local.notes for party in (feature, label))
        notes[PASSES_TRAINED] = self.length / self.steps_per_pass()
        return Training(snapshots, (*self.utility(feature, label, data), *_training_loss(losses)), notes)

    def utility(self, feature: FeatureParty, label: LabelParty, data: Data) -> tuple[Reading, ...]:
        """Return test AUC, for two classes, and accuracy of what the two parties can predict together."""
        features, own = self.divide_rows(data.test.inputs)
        device = device_of(self.device)
        activations = feature.features(features.to(device))
        scores = label.scores(activations, None if own is None else own.to(device)).cpu()
        return grade_scores(scores, data.test.labels, data.classes, keep=True)

    def observe(
        self, training: Training, defence: Defence, observation: Observation, enter: Enter | None = None
    ) -> Run:
        """Resume a training run from a stage, one step for each victim, and record both sides of every gradient."""
        data = self.data.load()
        feature, label = self.parties(data, defence, observation.seed, observation.batch_size)
        public = public_task(feature.bottom, tuple(feature.inputs.shape[1:]), data.classes)
        _require_room(feature, label, observation)
        initial = {name: tensor.detach().clone() for name, tensor in feature.bottom.named_parameters()}
        watch = Watch(public, feature, label)
        parties = watch.parties(enter)
        transcript: list[Message] = []
        for snapshot, steps in self._starts(training, observation):
            feature.restore(snapshot.memories[feature.name])
            label.restore(snapshot.memories[label.name])
            play(*parties, label.opening(), steps, lambda _, messages: transcript.extend(messages))
        # The last answer of the feature party is to a step that nobody observes any more.
        feature.local.memory["seen"] = {
            str(message.round): watch.seen[str(message.round)] for message in transcript if watch.seen
        }
        feature.local.memory["initial"] = initial
        notes = largest(party.local.notes for party in (feature, label))
        notes[PASSES_SEEN] = observation.victims / self.steps_per_pass(observation.batch_size)
        features, _ = self.divide_rows(data.test.inputs)
        return Run(
            transcript=tuple(transcript),
            public=public,
            defence=defence,
            truths=watch.truths,
            locals={party.name: party.local for party in (feature, label)},
            auxiliary=Batch(features, data.test.labels).to(public.device),
            notes=notes,
        )

    def _starts(self, training: Training, observation: Observation) -> Iterator[tuple[Snapshot, int]]:
        """Return where to take the training run up, and for how many steps."""
        if observation.stage != "training":
            if observation.stage not in training.snapshots:
                raise InvalidValue(f"There is no stage `{observation.stage}` in split learning.")
            yield training.snapshots[observation.stage], observation.victims
            return
        for number, steps in self.continuations(observation.victims).items():
            yield training.snapshots[moment(number)], steps


class _Joined(nn.Module):
    """Two halves of a network as one."""

    def __init__(self, parts: Halves) -> None:
        super().__init__()
        self.bottom, self.top = parts.bottom, parts.top

    def forward(self, features: Tensor, own: Tensor | None = None) -> Tensor:
        scores: Tensor = self.top(self.bottom(features), own)
        return scores


def _require_room(feature: FeatureParty, label: LabelParty, observation: Observation) -> None:
    """Refuse an observation that would not fit into memory.

    All its messages and the bottom's parameters are kept side by side.
    """
    bottom = sum(parameter.numel() for parameter in feature.bottom.parameters())
    # Activations, and the gradient before and after the defence.
    row = feature.inputs[0].numel() + 3 * math.prod(label.shape)
    size = observation.victims * (bottom + observation.batch_size * row)
    if size > MOST_NUMBERS:
        raise Refusal(
            f"An observation must hold at most {MOST_NUMBERS:,} numbers. {observation.victims} messages of "
            f"{observation.batch_size} examples hold {size:,}; take fewer `victims` or passes, smaller batches or "
            "fewer rows."
        )


def _snapshot(feature: FeatureParty, label: LabelParty) -> Snapshot:
    """Return both parties' states; nothing of split learning is public, and a message under way is made anew."""
    states = {party.name: party.state() for party in (feature, label)}
    for state in states.values():
        state.pop("sent", None)
    return Snapshot({}, states)


def _training_loss(losses: Sequence[Tensor]) -> list[Reading]:
    """Return the mean loss over the last tenth of the steps, at least one.

    Return nothing if there was no step or the model has diverged.
    """
    if not losses:
        return []
    last = torch.stack(list(losses))[-max(1, len(losses) // 10) :]
    return [Reading(name="training_loss", value=last.mean().item(), n=len(last))] if torch.isfinite(last).all() else []
