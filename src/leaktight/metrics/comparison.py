"""Comparisons: from one value for each example to a reading against the raw and one against the used batch."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Iterator, Sequence
from typing import ClassVar, Literal, final

import torch
from torch import Tensor

from leaktight.core.attack import Guess, Reconstruction
from leaktight.core.metric import Direction, Metric, Reading
from leaktight.core.random import Stream, stream
from leaktight.core.run import GroundTruth
from leaktight.core.task import Batch
from leaktight.metrics.chance import Blind, chance_level
from leaktight.metrics.pairing import arrange_all, on_screen
from leaktight.statistics.interval import Interval, bootstrap, wilson

Against = Literal["raw", "used"]
AGAINST: tuple[Against, Against] = ("raw", "used")


@dataclasses.dataclass(frozen=True)
class PairedExamples:
    """Guessed and true examples of all messages, pair by pair, and the number of each one's message."""

    against: Against
    guess: Tensor
    truth: Tensor
    messages: Tensor


def pair_guess(guess: Guess, truth: Sequence[GroundTruth], clamp: bool) -> Iterator[PairedExamples]:
    """Pair a reconstruction with the raw and then with the used examples; nothing for a guess that holds no examples.

    Args:
        guess: what the attack claims.
        truth: the ground truth behind each message, in the order of the guess's keys.
        clamp: whether guessed images are cut to [0, 1] first, as a screen would show them: what is scored is what is
            paired.
    """
    if not isinstance(guess, Reconstruction):
        return
    inputs = [on_screen(examples) for examples in guess.inputs] if clamp else guess.inputs
    for against in AGAINST:
        truths = [(ground_truth.raw if against == "raw" else ground_truth.used).inputs for ground_truth in truth]
        if any(len(examples) for examples in truths):
            yield PairedExamples(against, *arrange_all(inputs, truths))


def resample_messages(metric: Metric, values: Tensor, messages: Tensor, rng: Stream) -> Interval:
    """Return the interval of a mean from resampling whole messages, by a stream of the metric's own.

    It is the same whichever metrics were graded before.
    """
    return bootstrap(values, stream(rng.initial_seed(), "interval", metric.kind), groups=messages)


def share_interval(values: Tensor, messages: Tensor) -> Interval:
    """Return Wilson's interval of a share with the number of messages as the number of trials.

    That is the usual one for messages of one example, and for larger batches wide enough even if the examples of a
    message always stand or fall together. It keeps a width where all values are 0 or all are 1, which resampling does
    not.

    Args:
        values: 0 or 1 for each example.
        messages: the number of the message that each example is behind.

    Example:
        >>> low, high = share_interval(torch.zeros(4), torch.arange(4))
        >>> low, round(high, 2)
        (0.0, 0.49)
    """
    trials = len(torch.unique(messages))
    return wilson(values.double().mean().item() * trials, trials)


def read(metric: Metric, values: Tensor, interval: Interval, chance: float, against: Against) -> Reading:
    """Return the mean of one value for each example as a reading.

    Example:
        >>> from leaktight.metrics import MSE
        >>> reading = read(MSE(), torch.tensor([0.1, 0.3]), (0.1, 0.3), chance=0.5, against="raw")
        >>> round(reading.value, 2), reading.n, reading.leaks
        (0.2, 2, 'low')
    """
    low, high = interval
    return Reading(
        name=metric.kind,
        value=values.double().mean().item(),
        low=low,
        high=high,
        n=len(values),
        chance=chance,
        leaks=metric.leaks,
        against=against,
        each=tuple(values.tolist()),
    )


class Comparison(Metric):
    """Grades guessed inputs example by example, after one-to-one pairing within each message.

    Write `measure` and `applies`. The reading is the mean over examples; its chance level is that of the best answer
    that needs no message (`chance.chance_level`); its interval resamples messages, or is that of a `share` where each
    value is 0 or 1. Where the metric does not apply it gives no reading, so that one set of metrics serves every kind
    of data.
    """

    claim: ClassVar[str] = "inputs"
    leaks: ClassVar[Direction] = "high"
    clamp: ClassVar[bool] = False
    share: ClassVar[bool] = False

    @property
    def clamps(self) -> bool:
        """Whether guessed images are cut to [0, 1] before they are paired and measured."""
        return self.clamp

    @property
    def reading(self) -> str:
        """The name of its readings: its kind, unless settings make another number of it."""
        return self.kind

    @abc.abstractmethod
    def measure(self, guess: Tensor, truth: Tensor) -> Tensor:
        """Return one value for each pair of examples."""

    @abc.abstractmethod
    def applies(self, shape: Sequence[int]) -> bool:
        """Return whether examples of this shape can be measured."""

    @final
    def grade(
        self, guess: Guess, truth: Sequence[GroundTruth], rng: Stream, public: Batch | None = None
    ) -> tuple[Reading, ...]:
        """Return a reading against the raw and one against the used examples."""
        readings: list[Reading] = []
        if not isinstance(guess, Reconstruction) or not truth:
            return ()
        blind = Blind.of(guess, truth, public)
        for pairs in pair_guess(guess, truth, self.clamps):
            if not self.applies(pairs.truth.shape[1:]):
                continue
            values = self.measure(pairs.guess, pairs.truth)
            interval = (
                share_interval(values, pairs.messages)
                if self.share
                else resample_messages(self, values, pairs.messages, rng)
            )
            chance = chance_level(self.measure, self.leaks, pairs.truth, pairs.messages, blind, rng)
            reading = read(self, values, interval, chance, pairs.against)
            readings.append(reading.model_copy(update={"name": self.reading}))
        return tuple(readings)
