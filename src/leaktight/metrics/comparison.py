"""Comparisons: from one value for each example to a reading against the raw and one against the used batch."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Iterator, Sequence
from typing import ClassVar, Literal, final

from torch import Tensor

from leaktight.core.attack import Guess, Reconstruction
from leaktight.core.interval import bootstrap
from leaktight.core.metric import Metric, Reading
from leaktight.core.random import Stream, stream
from leaktight.core.run import Inside
from leaktight.metrics.pairing import arrange_all, blank

Against = Literal["raw", "used"]
AGAINST: tuple[Against, Against] = ("raw", "used")


@dataclasses.dataclass(frozen=True)
class Paired:
    """Guessed and true examples of all messages, example by example, and the number of the message each one is behind."""

    against: Against
    guess: Tensor
    truth: Tensor
    messages: Tensor


def paired(guess: Guess, truth: Sequence[Inside], clamp: bool) -> Iterator[Paired]:
    """Pair a reconstruction with the raw and then with the used examples; nothing for a guess that holds no examples.

    Args:
        guess: what the attack claims.
        truth: the other side of each message, in the order of the guess's keys.
        clamp: whether guesses are cut to [0, 1] first, as a screen would show them.
    """
    if not isinstance(guess, Reconstruction):
        return
    inputs = [examples.clamp(0, 1) for examples in guess.inputs] if clamp else guess.inputs
    for against in AGAINST:
        truths = [(inside.raw if against == "raw" else inside.used).inputs for inside in truth]
        if any(len(examples) for examples in truths):
            yield Paired(against, *arrange_all(inputs, truths))


def resampling(metric: Metric, rng: Stream) -> Stream:
    """Return a metric's own stream for its interval: the same whichever metrics were graded before it."""
    return stream(rng.initial_seed(), "interval", metric.kind)


def read(metric: Metric, values: Tensor, messages: Tensor, chance: float, against: Against, rng: Stream) -> Reading:
    """Return the mean of one value for each example, with an interval from resampling whole messages.

    Example:
        >>> import torch
        >>> from leaktight.core.random import stream
        >>> from leaktight.metrics import MSE
        >>> values, messages = torch.tensor([0.1, 0.3]), torch.tensor([0, 1])
        >>> reading = read(MSE(), values, messages, chance=0.5, against="raw", rng=stream(0))
        >>> round(reading.value, 2), reading.n, reading.leaks
        (0.2, 2, 'low')
    """
    low, high = bootstrap(values, resampling(metric, rng), groups=messages)
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

    Write `measure` and `applies`. The reading is the mean over examples; its chance level is what the blank answer scores
    (mid-grey for images, zeros for anything else); its interval resamples messages. Where the metric does not apply it
    gives no reading, so that one set of metrics serves every kind of data.
    """

    claim: ClassVar[str] = "inputs"
    clamp: ClassVar[bool] = False

    @abc.abstractmethod
    def measure(self, guess: Tensor, truth: Tensor) -> Tensor:
        """Return one value for each pair of examples."""

    @abc.abstractmethod
    def applies(self, shape: Sequence[int]) -> bool:
        """Return whether examples of this shape can be measured."""

    @final
    def grade(self, guess: Guess, truth: Sequence[Inside], rng: Stream) -> tuple[Reading, ...]:
        """Return a reading against the raw and one against the used examples."""
        return tuple(
            read(
                self,
                self.measure(pairs.guess, pairs.truth),
                pairs.messages,
                self.measure(blank(pairs.truth), pairs.truth).mean().item(),
                pairs.against,
                rng,
            )
            for pairs in paired(guess, truth, self.clamp)
            if self.applies(pairs.truth.shape[1:])
        )
