"""Attacks: a view in, a guess out. An attack never sees the truth, not even to choose its best answer."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar, Literal, final

import torch
from torch import Tensor

from leaktight.core.defence import Chain, Defence, Undefended
from leaktight.core.errors import LeaktightError, Refusal
from leaktight.core.message import Tensors
from leaktight.core.party import Party, Seat
from leaktight.core.random import Stream
from leaktight.core.run import GroundTruth, MessageKey
from leaktight.core.threat import Knows, View
from leaktight.core.value import Registered

Principle = Literal["search", "algebra", "learned", "statistic"]
"""What an attack rests on: a search, exact algebra, a learned model, or a statistic.

A search goes over candidates, a model is learned from public data, a statistic is taken over messages.

Attacks that rest on one principle tend to fail together, so that a defence counts as tried only where two principles
met it.
"""


@dataclasses.dataclass(frozen=True)
class Guess:
    """What an attack claims about each message, in the order of `keys`."""

    keys: tuple[MessageKey, ...]

    def check(self, attack: str, shape: tuple[int, ...]) -> None:
        """Raise a `LeaktightError` if it does not have the form that it promises.

        Args:
            attack: whose guess it is.
            shape: that of one example.
        """


@dataclasses.dataclass(frozen=True)
class Reconstruction(Guess):
    """Guessed examples behind each message.

    Args:
        keys: the messages that were attacked.
        inputs: for each message its guessed examples.
        labels: for each message the guessed labels, or None if the attack claims none.
        objective: what the attacker minimised, for each message: the only thing it may choose by.
        judge: the other sides of all messages to the same objective at the truth: for metrics, after the attack is
            over. None if there was no search.
        certified: for each message which of its guessed examples the attacker knows to be right, by a check of its own;
            None if the attack has no such check.
    """

    inputs: tuple[Tensor, ...]
    labels: tuple[Tensor, ...] | None = None
    objective: Tensor | None = None
    judge: Callable[[Sequence[GroundTruth]], Tensor] | None = dataclasses.field(default=None, repr=False, compare=False)
    certified: tuple[Tensor, ...] | None = None

    def check(self, attack: str, shape: tuple[int, ...]) -> None:
        """Examples have the task's shape and are finite."""
        for key, inputs in zip(self.keys, self.inputs, strict=True):
            if tuple(inputs.shape[1:]) != shape:
                raise LeaktightError(
                    f"{attack} must guess inputs of shape {shape} for {key}. Got {tuple(inputs.shape[1:])} instead."
                )
            if not torch.isfinite(inputs).all():
                raise LeaktightError(f"{attack} guessed inputs for {key} that are not finite numbers.")


@dataclasses.dataclass(frozen=True)
class GuessedLabels(Guess):
    """Guessed labels behind each message, and nothing else."""

    labels: tuple[Tensor, ...]


@dataclasses.dataclass(frozen=True)
class Scores(Guess):
    """One score per example of each message, or per message: the larger, the likelier."""

    values: tuple[Tensor, ...]


@dataclasses.dataclass(frozen=True)
class RowScores:
    """How likely each row of the feature party is positive, judged by the messages of several passes together.

    Args:
        rows: for each message a number for each example behind it, the same wherever the row is, from 0.
        values: (layers, passes, rows) what each pass that was seen says of each row; NaN for a row that it does not
            speak of. The attacker has fixed one sign for all passes.
        blind: the same from what the attacker has without the messages about that row.
        adds: whether the passes are added up; else each speaks of a row anew, and the last one counts.
    """

    rows: tuple[Tensor, ...]
    values: Tensor
    blind: Tensor
    adds: bool = True


@dataclasses.dataclass(frozen=True)
class LabelScores(Scores):
    """How likely each example behind a message is positive, judged by the gradients at some layers.

    Args:
        keys: the messages that were attacked.
        values: for each message a row of scores for each layer; NaN for an example that is not scored, as its label is
            known.
        layers: the layer of each row; None for the message itself, the gradient at the cut.
        signed: whether larger means likelier positive; else it may as well mean the opposite, in each message anew.
        blind: as `values`, with the rows of each message dealt out by chance: what the attacker's own inputs tell at
            layers before the cut. Empty if only the cut is scored.
        passes: the scores of each row over passes, if the attacker knows which row is where; None if not.
    """

    layers: tuple[str | None, ...] = (None,)
    signed: bool = True
    blind: tuple[Tensor, ...] = ()
    passes: RowScores | None = None

    def check(self, attack: str, shape: tuple[int, ...]) -> None:
        """There is a row of scores for each layer; no score is infinite."""
        for key, scores in zip(self.keys, self.values, strict=True):
            if scores.dim() != 2 or len(scores) != len(self.layers) or torch.isinf(scores).any():
                raise LeaktightError(
                    f"{attack} must score {key} by finite numbers, one row for each of {len(self.layers)} layers. "
                    f"Got shape {tuple(scores.shape)}{' with infinities' if torch.isinf(scores).any() else ''} instead."
                )


@dataclasses.dataclass(frozen=True)
class PropertyScores(Guess):
    """How likely the examples behind each message have a private property, judged by the tensors of some layers.

    Args:
        keys: the messages that were attacked.
        values: probabilities, a row for each layer and a column for each message.
        layers: the layer of each row; None for all layers together.
    """

    values: Tensor
    layers: tuple[str | None, ...] = (None,)

    def check(self, attack: str, shape: tuple[int, ...]) -> None:
        """There is a probability for each layer and message."""
        wanted = (len(self.layers), len(self.keys))
        if tuple(self.values.shape) != wanted or not ((self.values >= 0) & (self.values <= 1)).all():
            raise LeaktightError(
                f"{attack} must give probabilities of shape {wanted}. Got shape {tuple(self.values.shape)}, or others."
            )


@dataclasses.dataclass(frozen=True)
class GuessedStatistics(Guess):
    """Means and variances of the batch behind each message, at the layers that normalise by them.

    Args:
        keys: the messages that were attacked.
        values: for each message the guessed statistics, by the wire names of the running ones.
        blind: the same by an attacker who had not seen the message.
    """

    values: tuple[Tensors, ...]
    blind: tuple[Tensors, ...]

    def check(self, attack: str, shape: tuple[int, ...]) -> None:
        """Statistics are finite, and the blind ones have their form."""
        for key, values, blind in zip(self.keys, self.values, self.blind, strict=True):
            same = values.keys() == blind.keys() and all(values[name].shape == blind[name].shape for name in values)
            if not same or not all(torch.isfinite(tensor).all() for tensor in values.values()):
                raise LeaktightError(f"{attack} must guess finite statistics of the form of the blind ones for {key}.")


@dataclasses.dataclass(frozen=True)
class GuessedSamples(Guess):
    """Examples of one class that the attacker made up; none of them stands for a particular example behind a message.

    Args:
        keys: the messages whose senders hold the class, together.
        inputs: the samples, one row each.
        label: the class that they are to be of.
        history: a few samples of each round that was looked at, (rounds, samples, *shape).
        rounds: which rounds those were.
        estimates: what it took a class key for on some turns, one row each, the last one last; None if it estimates
            none.
        controls: what the same attack made without what it knows or learned of a key, (controls, samples, *shape); None
            where there are no keys.
    """

    inputs: Tensor
    label: int
    history: Tensor
    rounds: tuple[int, ...]
    estimates: Tensor | None = None
    controls: Tensor | None = None

    def check(self, attack: str, shape: tuple[int, ...]) -> None:
        """Samples have the task's shape, now and in each round, and are finite."""
        shapes = [self.inputs.shape[1:], self.history.shape[2:]]
        shapes += [] if self.controls is None else [self.controls.shape[2:]]
        if any(tuple(each) != shape for each in shapes) or len(self.history) != len(self.rounds):
            raise LeaktightError(
                f"{attack} must make samples of shape {shape}, now and in {len(self.rounds)} rounds. "
                f"Got {tuple(self.inputs.shape)} and {tuple(self.history.shape)} instead."
            )
        if not torch.isfinite(self.inputs).all():
            raise LeaktightError(f"{attack} made samples that are not finite numbers.")


@dataclasses.dataclass(frozen=True)
class Ensemble(Guess):
    """The guesses of several attacks about the same messages, and the one that an attacker who has them all would give.

    Args:
        keys: the messages of the answer.
        answer: what the attacker answers, chosen by what it can see.
        members: what each attack guessed, by its name; a member may speak of some of the messages only.
        untried: why other attacks were not tried, by their names.
    """

    answer: Guess
    members: Mapping[str, Guess]
    untried: Mapping[str, str] = dataclasses.field(default_factory=dict)


class Attack(Registered):
    """Something that turns a view into a guess.

    Write `run`; call the attack. `needs` is what the threat model must grant, `claims` what the guess speaks of
    (`inputs`, `labels`, `scores`, `property`, `samples`, `statistics`), `goals` the same in words for reports, such as
    `rebuild the examples`, `principle` what it rests on, `simple` marks an attack that a strong one should beat,
    `models` says which defences it models, `active` marks one that sits in its seat while the model is trained. An
    attack with a field `accomplices` takes those seats too.
    """

    family: ClassVar[str] = "attack"
    claims: ClassVar[frozenset[str]] = frozenset()
    goals: ClassVar[tuple[str, ...]] = ()
    principle: ClassVar[Principle] = "search"
    simple: ClassVar[bool] = False

    @property
    def needs(self) -> frozenset[Knows]:
        """What the threat model must grant."""
        return frozenset()

    @property
    def wants(self) -> frozenset[Knows]:
        """What it makes use of where a plan does not say what the attacker knows."""
        return self.needs

    def models(self, defence: Defence) -> bool:
        """Whether the attack models what this single defence does to a message.

        It does so by what it replays, searches for or learns from. An attack that knows the defence in use and makes
        nothing of it does not.
        """
        return False

    @final
    def adapts_to(self, defence: Defence) -> bool:
        """Whether the attack models this defence: of a chain, every link that does anything."""
        if isinstance(defence, Chain):
            acting = [link for link in defence.links if not isinstance(link, Undefended)]
            return bool(acting) and all(map(self.adapts_to, acting))
        return defence.is_public and not isinstance(defence, Undefended) and self.models(defence)

    @property
    def active(self) -> bool:
        """Whether the attack must take its seat during training; no other attack shares that training run."""
        return False

    @property
    def aim(self) -> str:
        """Which of several things it is after, in words, such as `class 3`; empty if it has no such choice."""
        return ""

    @property
    def further(self) -> tuple[str, ...]:
        """The seats it takes in addition to that of the threat model: its `accomplices`, if it has that field."""
        return tuple(dict(self).get("accomplices", ()))

    def member(self, name: str) -> Attack:
        """Return the attack of this name among those that this one combines; a single attack is its own only member."""
        return self

    @property
    def joins(self) -> bool:
        """Whether it combines several messages about the same examples.

        Noise that a defence draws anew then averages out.
        """
        return self.active

    def take(self, seat: Seat) -> Party:
        """Return who sits in the attacker's seat while the run lasts; an active attack returns a dishonest party.

        What it learns in a training run belongs into `seat.local.memory`, as tensors and numbers by nested name: it is
        kept with the training run, is there again when the seat is taken for an observation, and is the `memory` of the
        view that `run` is given.
        """
        return seat.honest

    @abc.abstractmethod
    def run(self, view: View, rng: Stream) -> Guess:
        """Attack what is in view."""

    @final
    def __call__(self, view: View, rng: Stream) -> Guess:
        """Run the attack and let its guess check that it has the promised form."""
        guess = self.run(view, rng)
        guess.check(self.kind, view.task.shape)
        return guess

    @final
    def check(self, knows: frozenset[Knows]) -> None:
        """Refuse if the threat model withholds something the attack needs."""
        missing = sorted(self.needs - knows)
        if missing:
            raise Refusal(
                f"{self.kind} needs to know {', '.join(missing)}, which the threat model withholds. Add it to "
                "`knows`, or drop the attack."
            )
