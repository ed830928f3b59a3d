"""Generated: do the pictures that an attacker made up show the class that it was after, and whose are they?

None of them stands for a particular example, so nothing is paired. They are judged by a classifier that was learned
from public examples, and by their distance to the examples of the class that the attacked parties hold.
"""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import ClassVar, Literal, final

import torch
from torch import Tensor

from leaktight.core.attack import Guess, GuessedSamples
from leaktight.core.errors import Refusal
from leaktight.core.metric import Direction, Metric, Reading
from leaktight.core.random import Stream
from leaktight.core.run import GroundTruth
from leaktight.core.task import Batch
from leaktight.metrics.comparison import resample_messages
from leaktight.metrics.pairing import is_image
from leaktight.metrics.recogniser import recogniser
from leaktight.statistics.interval import wilson


class Generated(Metric):
    """Grades samples of one class. Write `read`; samples that are no images get no reading.

    All intervals hold for further samples of the same generator, not for another training run: the audit's seeds cover
    that.
    """

    claim: ClassVar[str] = "samples"
    learns_from_public: ClassVar[bool] = True

    @final
    def grade(
        self, guess: Guess, truth: Sequence[GroundTruth], rng: Stream, public: Batch | None = None
    ) -> tuple[Reading, ...]:
        """Return one reading; nothing for a guess that holds no samples."""
        if not isinstance(guess, GuessedSamples) or not is_image(guess.inputs.shape[1:]):
            return ()
        if public is None or not (public.labels == guess.label).any():
            raise Refusal(
                f"{self.kind} needs public examples of class {guess.label}. There are none; use data that holds some "
                "out."
            )
        return (self.read(guess, truth, rng, public),)

    @abc.abstractmethod
    def read(self, guess: GuessedSamples, truth: Sequence[GroundTruth], rng: Stream, public: Batch) -> Reading:
        """Grade the samples, given public examples of which some are of their class."""


class Recognised(Generated):
    r"""The share of samples that an independent classifier assigns to the victim's class.

    .. math:: \frac{1}{n} \sum_i [\arg\max_c p_c(x_i) = v]

    The classifier is learned once from public examples (`metrics.recogniser`). It may also say that a picture shows
    nothing. The chance level is the share of all public examples that it assigns to the class, or of what the attack
    made with a random key, whichever is more. The interval is Wilson's.

    Example:
        >>> Recognised().leaks, Recognised.claim
        ('high', 'samples')

    Differs from the paper: The classifier there is learned from the complete data set, private examples included, and
    has to choose a class.

    References:
        Sariyildiz, Cinbis and Ayday, Key Protected Classification for Collaborative Learning, 2020, section 5.3.
    """

    kind: Literal["recognised"] = "recognised"
    title: ClassVar[str] = "samples recognised"
    unit: ClassVar[str] = "%"
    digits: ClassVar[int | None] = 1
    leaks: ClassVar[Direction] = "high"

    def read(self, guess: GuessedSamples, truth: Sequence[GroundTruth], rng: Stream, public: Batch) -> Reading:
        """Return the share."""
        known = recogniser(public)
        recognised, *usual = (
            _is_label(known.probabilities(inputs), guess.label)
            for inputs in (guess.inputs, public.inputs, *_controls(guess))
        )
        low, high = wilson(recognised.sum().item(), len(recognised))
        return sample_reading(self, recognised, low, high, chance=_largest_mean(usual))


class RecognisedAny(Generated):
    r"""The share of samples that the classifier of `Recognised` assigns to any class that the attacked parties hold.

    Who has no key of the class that it is after may hit upon another one of theirs, which `recognised` alone would call
    a failure. But a classifier assigns many a picture to some class that shows nothing of anybody's, and a generator
    that makes one picture only is assigned wholly or not at all. So the chance level is the share of all public
    examples that it assigns to one of their classes, or of what the same attack made with a random key (`controls` of
    `gan`), whichever is more. The interval is Wilson's, over samples: one training run proves little.

    Example:
        >>> print(RecognisedAny())
        recognised_any

    Differs from the paper: It counts any digit, the attacker's own included.

    References:
        Sariyildiz, Cinbis and Ayday, Key Protected Classification for Collaborative Learning, 2020, sections 4.3 and
        5.3, experiment III.
    """

    kind: Literal["recognised_any"] = "recognised_any"
    title: ClassVar[str] = "samples recognised, any class"
    unit: ClassVar[str] = "%"
    digits: ClassVar[int | None] = 1
    leaks: ClassVar[Direction] = "high"

    def read(self, guess: GuessedSamples, truth: Sequence[GroundTruth], rng: Stream, public: Batch) -> Reading:
        """Return the share."""
        known, classes = recogniser(public), torch.cat([batch.labels.cpu() for batch in own_batches(truth)])
        recognised, *usual = (
            torch.isin(known.probabilities(inputs).argmax(1), classes).double()
            for inputs in (guess.inputs, public.inputs, *_controls(guess))
        )
        low, high = wilson(recognised.sum().item(), len(recognised))
        return sample_reading(self, recognised, low, high, chance=_largest_mean(usual))


class RecognisedConfidence(Generated):
    r"""How sure the classifier of `Recognised` is, on average, that a sample is of the victim's class.

    .. math:: \frac{1}{n} \sum_i p_v(x_i)

    The chance level is the mean probability of the class over all public examples, or over what the attack made with a
    random key, whichever is more. The interval resamples samples.

    Example:
        >>> print(RecognisedConfidence())
        recognised_confidence

    Differs from the paper: It gives shares only.
    """

    kind: Literal["recognised_confidence"] = "recognised_confidence"
    title: ClassVar[str] = "recogniser's confidence"
    unit: ClassVar[str] = "%"
    digits: ClassVar[int | None] = 1
    leaks: ClassVar[Direction] = "high"

    def read(self, guess: GuessedSamples, truth: Sequence[GroundTruth], rng: Stream, public: Batch) -> Reading:
        """Return the mean probability."""
        known = recogniser(public)
        sure, *usual = (
            known.probabilities(inputs)[:, guess.label].double()
            for inputs in (guess.inputs, public.inputs, *_controls(guess))
        )
        low, high = resample_messages(self, sure, torch.arange(len(sure)), rng)
        return sample_reading(self, sure, low, high, chance=_largest_mean(usual))


class RecognisedOverRounds(Generated):
    """Judges the samples of all rounds that were kept. Write `summarise`.

    A game between generator and model goes back and forth: read at its end alone, an attack may look like a success or
    like a failure by luck.
    """

    leaks: ClassVar[Direction | None] = None
    unit: ClassVar[str] = "%"
    digits: ClassVar[int | None] = 1

    def read(self, guess: GuessedSamples, truth: Sequence[GroundTruth], rng: Stream, public: Batch) -> Reading:
        """Return the share in the round that counts; `each` has those of all rounds."""
        known = recogniser(public)
        each = torch.stack([_is_label(known.probabilities(inputs), guess.label).mean() for inputs in guess.history])
        reading = sample_reading(self, each, None, None, chance=None)
        return reading.model_copy(update={"value": self.summarise(each)})

    @abc.abstractmethod
    def summarise(self, shares: Tensor) -> float:
        """Return what stands for all rounds."""


class RecognisedMedian(RecognisedOverRounds):
    """The share of samples that are recognised as the class in the median round of those that were kept.

    Example:
        >>> print(RecognisedMedian())
        recognised_median

    Differs from the paper: It looks at the end alone.
    """

    kind: Literal["recognised_median"] = "recognised_median"
    title: ClassVar[str] = "samples recognised, median round"

    def summarise(self, shares: Tensor) -> float:
        """Return the median."""
        return shares.median().item()


class RecognisedBest(RecognisedOverRounds):
    """The share of samples that are recognised as the class in the best round of those that were kept.

    Only who knows the truth can name that round: an attacker does at most so well.

    Example:
        >>> print(RecognisedBest())
        recognised_best

    Differs from the paper: It looks at the end alone.
    """

    kind: Literal["recognised_best"] = "recognised_best"
    title: ClassVar[str] = "samples recognised, best round"

    def summarise(self, shares: Tensor) -> float:
        """Return the largest."""
        return shares.max().item()


def _controls(guess: GuessedSamples) -> tuple[Tensor, ...]:
    """Return what the attack made with each random key."""
    return () if guess.controls is None else tuple(guess.controls)


def _largest_mean(shares: Sequence[Tensor]) -> float:
    return max(share.mean().item() for share in shares)


def _is_label(probabilities: Tensor, label: int) -> Tensor:
    return (probabilities.argmax(1) == label).double()


def own_batches(truth: Sequence[GroundTruth]) -> list[Batch]:
    """Return the attacked parties' own examples; of a party that wrote down no more, those behind its message."""
    return [ground_truth.raw if ground_truth.owned is None else ground_truth.owned for ground_truth in truth]


def sample_reading(
    metric: Metric, each: Tensor, low: float | None, high: float | None, chance: float | None
) -> Reading:
    """Return a metric's reading of samples, from the value of each."""
    return Reading(
        name=metric.kind,
        value=each.mean().item(),
        low=low,
        high=high,
        n=len(each),
        chance=chance,
        leaks=metric.leaks,
        against="raw",
        each=tuple(each.tolist()),
    )
