"""Probes: anything that reads a run and returns readings. Most hold an attack; some need none."""

from __future__ import annotations

import abc
import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar, Literal

import torch
from pydantic import SerializeAsAny
from torch import Tensor

from leaktight.core.attack import Attack, Ensemble, Guess, GuessedLabels, Reconstruction
from leaktight.core.metric import MESSAGE, Metric, Quantity, Reading
from leaktight.core.party import Party, Seat
from leaktight.core.random import Stream
from leaktight.core.run import GroundTruth, MessageKey, Run
from leaktight.core.task import Batch
from leaktight.core.threat import Knows, ThreatModel
from leaktight.core.value import Registered

OBJECTIVE, DIVERGED = "objective", "diverged"
"""The readings of a guess that nobody can grade."""
LUCKIEST = "luckiest"
"""By whom the best guess of any attack is, chosen by the truth: the end that a luckier attacker might reach."""


@dataclasses.dataclass(frozen=True)
class Finding:
    """What a probe found: readings to publish, a remark, and the guess with its truth for the owner's eyes."""

    readings: tuple[Reading, ...]
    guess: Guess | None = None
    truth: tuple[GroundTruth, ...] = ()
    remark: str = ""


class Probe(Registered):
    """Looks at one run and returns readings; may first take a seat in it."""

    family: ClassVar[str] = "probe"

    @classmethod
    def quantities(cls) -> Mapping[str, Quantity]:
        """Return what it reads, by the names of its readings.

        Names that hold a number, such as `accuracy_after_10`, speak for themselves and are left out.
        """
        return {}

    @property
    def entrant(self) -> Probe | None:
        """The part of the probe that takes a seat in the training run; None if it takes none.

        What does not change that run is left out.
        """
        return None

    @property
    def draws(self) -> str:
        """The name of the probe's random stream.

        Probes of one name draw the same, and so are compared on the same examples.
        """
        return self.key

    def enter(self, seat: Seat) -> Party:
        """Return who sits in this seat while the run lasts."""
        return seat.honest

    @abc.abstractmethod
    def read(self, run: Run, rng: Stream) -> Finding:
        """Read the run."""


class Attempt(Probe):
    """An attack from a seat, graded: the probe that most cells of an audit hold."""

    kind: Literal["attempt"] = "attempt"
    attack: SerializeAsAny[Attack]
    threat: ThreatModel = ThreatModel()
    metrics: tuple[SerializeAsAny[Metric], ...] = ()

    @classmethod
    def quantities(cls) -> Mapping[str, Quantity]:
        """Return what it reads of a guess that nobody can grade; what a metric reads, the metric states."""
        return {OBJECTIVE: Quantity("objective, not graded"), DIVERGED: Quantity("searches that diverged")}

    @property
    def entrant(self) -> Attempt | None:
        """The attempt without its metrics, if its attack is active."""
        return self.model_copy(update={"metrics": ()}) if self.attack.active else None

    @property
    def draws(self) -> str:
        """The attack alone: neither who sits where nor how it is graded changes what it draws."""
        return self.attack.key

    def enter(self, seat: Seat) -> Party:
        """Let an attack take its seats, and tell it there what the threat model grants."""
        if seat.name not in (self.threat.seat, *self.attack.further):
            return seat.honest
        return self.attack.take(dataclasses.replace(seat, known=self.threat.grant(seat.known)))

    def read(self, run: Run, rng: Stream) -> Finding:
        """Attack the view and grade the guess.

        Where nobody knows the truth, only say what the attacker itself can see.
        """
        self.attack.check(self.threat.knows)
        guess = self.attack(self.threat.view(run), rng)
        if not isinstance(guess, Ensemble):
            return self._finding(run, guess, rng)
        known = guessed_labels(guess)
        finding = self._finding(run, guess.answer, rng, known)
        members = dict(guess.members)
        if run.truths and (luckiest := _luckiest(members.values(), finding.truth)) is not None:
            members[LUCKIEST] = luckiest
        by_member = [
            reading.model_copy(update={"by": name})
            for name, member in members.items()
            for reading in self._finding(run, member, rng, known).readings
        ]
        untried = "; ".join(f"{name}: {why}" for name, why in guess.untried.items())
        remark = f"Not tried: {untried}" if untried else ""
        return dataclasses.replace(finding, readings=(*finding.readings, *by_member), remark=remark)

    def _finding(
        self, run: Run, guess: Guess, rng: Stream, known: Mapping[MessageKey, Tensor] | None = None
    ) -> Finding:
        if not run.truths:
            return Finding(ungraded_readings(guess), guess)
        truth = tuple(run.truth(key) for key in guess.keys)
        lost = tuple(reading for reading in ungraded_readings(guess) if reading.name == DIVERGED and reading.value)
        return Finding((*self.grade(guess, truth, rng, run.auxiliary, known), *lost), guess, truth)

    def grade(
        self,
        guess: Guess,
        truth: Sequence[GroundTruth],
        rng: Stream,
        public: Batch | None = None,
        known: Mapping[MessageKey, Tensor] | None = None,
    ) -> tuple[Reading, ...]:
        """Apply every metric that grades something the guess claims, or the message itself.

        A metric compares with what an attacker of this threat model could answer without a message: public examples
        count only where they are granted, and labels that are given, or that another attack of the same attacker read
        (`known`), count as known.
        """
        claimed = {*self.attack.claims, MESSAGE}
        if isinstance(guess, Reconstruction) and guess.labels is None:
            claimed.discard("labels")
            if Knows.LABELS in self.threat.knows:
                guess = dataclasses.replace(guess, labels=tuple(ground_truth.used.labels for ground_truth in truth))
            elif known is not None and all(key in known for key in guess.keys):
                guess = dataclasses.replace(guess, labels=tuple(known[key] for key in guess.keys))
        granted = public if Knows.AUXILIARY in self.threat.knows else None
        return tuple(
            reading
            for metric in self.metrics
            if metric.claim in claimed
            for reading in metric.grade(guess, truth, rng, public if metric.learns_from_public else granted)
        )


def _luckiest(members: Iterable[Guess], truth: Sequence[GroundTruth]) -> Reconstruction | None:
    """Return for each message the guess nearest to the truth, over all attacks; None if none guesses examples."""
    nearest: dict[MessageKey, tuple[float, Tensor]] = {}
    by_key = {ground_truth.sent.key: ground_truth.raw.inputs for ground_truth in truth}
    for member in members:
        if not isinstance(member, Reconstruction):
            continue
        for key, inputs in zip(member.keys, member.inputs, strict=True):
            real = by_key.get(key)
            if real is None or len(real) != len(inputs):
                continue
            # Each true example by the nearest guess: the order within a message is nobody's.
            error = torch.cdist(real.flatten(1).double().cpu(), inputs.flatten(1).double().cpu()).amin(1).sum().item()
            if key not in nearest or error < nearest[key][0]:
                nearest[key] = error, inputs
    return Reconstruction(tuple(nearest), tuple(inputs for _, inputs in nearest.values())) if nearest else None


def guessed_labels(guess: Ensemble) -> dict[MessageKey, Tensor]:
    """Return the labels that an attacker with several attacks has for each message.

    They are those of its answer, else those of the first attack that has any.
    """
    known: dict[MessageKey, Tensor] = {}
    for member in (guess.answer, *guess.members.values()):
        if isinstance(member, GuessedLabels | Reconstruction) and member.labels is not None:
            for key, labels in zip(member.keys, member.labels, strict=True):
                known.setdefault(key, labels)
    return known


def ungraded_readings(guess: Guess) -> tuple[Reading, ...]:
    """Return what the attacker knows of its own success: what is left of its objective, how many searches diverged.

    It is no grade. Examples that match a message well may be the private ones or others that make the same message.

    Example:
        >>> import torch
        >>> guess = Reconstruction((("client-0", 0), ("client-0", 1)), (), objective=torch.tensor([0.25, float("inf")]))
        >>> [(reading.name, reading.value, reading.n) for reading in ungraded_readings(guess)]
        [('objective', 0.25, 1), ('diverged', 1.0, 2)]
    """
    if not isinstance(guess, Reconstruction) or guess.objective is None:
        return ()
    left = [value for value in guess.objective.tolist() if math.isfinite(value)]
    diverged = Reading(name=DIVERGED, value=len(guess.objective) - len(left), n=len(guess.objective))
    if not left:
        return (diverged,)
    return Reading(name=OBJECTIVE, value=sum(left) / len(left), n=len(left), each=tuple(left)), diverged


def attack_of(probe: Probe) -> Attack | None:
    """Return the attack a probe holds; None for a measurement that needs none."""
    return probe.attack if isinstance(probe, Attempt) else None
