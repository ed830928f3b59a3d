"""Generated: do the pictures that an attacker made up show the class that it was after, and whose are they?

None of them stands for a particular example, so nothing is paired. They are judged by a classifier that was learned
from public examples, and by their distance to the examples of the class that the attacked parties hold.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Sequence
from typing import ClassVar, Literal, final

import torch
from torch import Tensor

from leaktight.core.attack import Guess, Samples
from leaktight.core.errors import Refusal
from leaktight.core.metric import Direction, Metric, Reading
from leaktight.core.random import Stream, draw, stream
from leaktight.core.run import GroundTruth
from leaktight.core.task import Batch
from leaktight.metrics.comparison import resample_messages
from leaktight.metrics.pairing import is_image
from leaktight.metrics.recogniser import recogniser
from leaktight.statistics.interval import wilson

_TINY = 1e-12
_DEALS = 100


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
        if not isinstance(guess, Samples) or not is_image(guess.inputs.shape[1:]):
            return ()
        if public is None or not (public.labels == guess.label).any():
            raise Refusal(
                f"{self.kind} needs public examples of class {guess.label}. There are none; use data that holds some "
                "out."
            )
        return (self.read(guess, truth, rng, public),)

    @abc.abstractmethod
    def read(self, guess: Samples, truth: Sequence[GroundTruth], rng: Stream, public: Batch) -> Reading:
        """Grade the samples, given public examples of which some are of their class."""


class Recognised(Generated):
    r"""The share of samples that an independent classifier assigns to the victim's class.

    .. math:: \frac{1}{n} \sum_i [\arg\max_c p_c(x_i) = v]

    The classifier is learned once from public examples (`metrics.recogniser`). It may also say that a picture shows
    nothing. The chance level is the share of all public examples that it assigns to the class. The interval is
    Wilson's.

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

    def read(self, guess: Samples, truth: Sequence[GroundTruth], rng: Stream, public: Batch) -> Reading:
        """Return the share."""
        known = recogniser(public)
        recognised, usual = (
            _is_label(known.probabilities(inputs), guess.label) for inputs in (guess.inputs, public.inputs)
        )
        low, high = wilson(recognised.sum().item(), len(recognised))
        return _reading(self, recognised, low, high, chance=usual.mean().item())


class RecognisedAny(Generated):
    r"""The share of samples that the classifier of `Recognised` assigns to any class that the attacked parties hold.

    Who has no key of the class that it is after may hit upon another one of theirs, which `recognised` alone would call
    a failure. The chance level is the share of all public examples that it assigns to one of their classes; the
    interval is Wilson's.

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

    def read(self, guess: Samples, truth: Sequence[GroundTruth], rng: Stream, public: Batch) -> Reading:
        """Return the share."""
        known, classes = recogniser(public), torch.cat([batch.labels.cpu() for batch in _own_batches(truth)])
        recognised, usual = (
            torch.isin(known.probabilities(inputs).argmax(1), classes).double()
            for inputs in (guess.inputs, public.inputs)
        )
        low, high = wilson(recognised.sum().item(), len(recognised))
        return _reading(self, recognised, low, high, chance=usual.mean().item())


class RecognisedConfidence(Generated):
    r"""How sure the classifier of `Recognised` is, on average, that a sample is of the victim's class.

    .. math:: \frac{1}{n} \sum_i p_v(x_i)

    The chance level is the mean probability of the class over all public examples. The interval resamples samples.

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

    def read(self, guess: Samples, truth: Sequence[GroundTruth], rng: Stream, public: Batch) -> Reading:
        """Return the mean probability."""
        known = recogniser(public)
        sure, usual = (known.probabilities(inputs)[:, guess.label].double() for inputs in (guess.inputs, public.inputs))
        low, high = resample_messages(self, sure, torch.arange(len(sure)), rng)
        return _reading(self, sure, low, high, chance=usual.mean().item())


class NearestPrivate(Generated):
    r"""How much nearer samples come to private examples of the class than to public ones.

    With P private and Q public examples of the class, equally many, drawn at random from what there is,

    .. math:: \frac1n \sum_i \frac{a_i}{a_i + b_i}, \qquad a_i = \min_{p \in P} \lVert x_i - p \rVert, \quad
        b_i = \min_{q \in Q} \lVert x_i - q \rVert .

    The chance level is 1/2: pictures of the class that are nobody's in particular come as near to one as to the other.
    At 0 the samples are private examples; a value below 1/2 means that the generator learned more than the class. The
    interval is the normal one, \(\pm 1.96 s\), where \(s^2\) is the variance of the mean over samples plus that over
    random deals of all 2 |P| examples into two sets: where all samples are one picture, the second is all there is.

    Example:
        >>> NearestPrivate().leaks
        'low'

    Differs from the paper: It has no such number.
    """

    kind: Literal["nearest_private"] = "nearest_private"
    title: ClassVar[str] = "nearness to private images"
    leaks: ClassVar[Direction] = "low"

    def read(self, guess: Samples, truth: Sequence[GroundTruth], rng: Stream, public: Batch) -> Reading:
        """Return the mean share of distances."""
        private, others = _private_examples(self, guess, truth), public.inputs[public.labels == guess.label]
        count = min(len(private), len(others))
        pick = stream(rng.initial_seed(), self.kind)
        examples = torch.cat([_some(inputs, count, pick) for inputs in (private, others)])
        apart = _distances(guess.inputs, examples)
        share = _share(apart, torch.arange(2 * count))
        deals = [_share(apart, torch.randperm(2 * count, generator=pick)).mean() for _ in range(_DEALS)]
        value = share.mean().item()
        margin = 1.96 * math.sqrt(share.var().item() / len(share) + torch.stack(deals).var().item())
        return _reading(self, share, max(0.0, value - margin), value + margin, chance=0.5)


class SampleDiversity(Generated):
    r"""How much samples differ, relative to the private examples of the class: 0 if the generator makes one picture.

    .. math:: \frac{\frac{1}{n (n - 1)} \sum_{i \neq j} \lVert x_i - x_j \rVert}
        {\frac{1}{m (m - 1)} \sum_{i \neq j} \lVert p_i - p_j \rVert}

    Pictures of noise differ as well, so this is no leakage by itself: read it beside `recognised`. A collapsed
    generator tells what one example of the class may look like; one near 1 tells how they vary. The chance level 0 is
    that of collapse. The interval is the normal one of a mean over pairs, \(\pm 1.96 \cdot 2 s / \sqrt n\) with s the
    standard deviation of each sample's mean distance to the others.

    Example:
        >>> SampleDiversity().leaks is None
        True

    Differs from the paper: It says that generators collapse, and shows pictures.

    References:
        Hoeffding, A Class of Statistics with Asymptotically Normal Distribution, 1948, for the interval.
    """

    kind: Literal["sample_diversity"] = "sample_diversity"
    title: ClassVar[str] = "diversity of samples"
    leaks: ClassVar[Direction | None] = None

    def read(self, guess: Samples, truth: Sequence[GroundTruth], rng: Stream, public: Batch) -> Reading:
        """Return the relative mean distance."""
        real = _some(_private_examples(self, guess, truth), len(guess.inputs), stream(rng.initial_seed(), self.kind))
        if len(guess.inputs) < 2 or len(real) < 2:
            raise Refusal(f"{self.kind} needs at least 2 samples and 2 private examples of class {guess.label}.")
        each = _spread(guess.inputs) / _spread(real).mean().clamp_min(_TINY)
        margin = 2 * 1.96 * each.std().item() / math.sqrt(len(each))
        value = each.mean().item()
        return _reading(self, each, max(0.0, value - margin), value + margin, chance=0.0)


def _is_label(probabilities: Tensor, label: int) -> Tensor:
    return (probabilities.argmax(1) == label).double()


def _own_batches(truth: Sequence[GroundTruth]) -> list[Batch]:
    """Return the attacked parties' own examples; of a party that wrote down no more, those behind its message."""
    return [ground_truth.raw if ground_truth.owned is None else ground_truth.owned for ground_truth in truth]


def _private_examples(metric: Metric, guess: Samples, truth: Sequence[GroundTruth]) -> Tensor:
    """Return the attacked parties' own examples of the class."""
    examples = [batch.inputs[batch.labels == guess.label].cpu() for batch in _own_batches(truth)]
    if not sum(map(len, examples)):
        raise Refusal(
            f"{metric.kind} needs private examples of class {guess.label}. None of the attacked parties holds one."
        )
    return torch.cat(examples)


def _some(inputs: Tensor, count: int, rng: Stream) -> Tensor:
    return inputs.cpu()[draw(torch.arange(len(inputs)), min(count, len(inputs)), rng)]


def _rows(inputs: Tensor) -> Tensor:
    return inputs.detach().cpu().double().clamp(0, 1).flatten(1)


def _distances(images: Tensor, others: Tensor) -> Tensor:
    # The quick way by squares is off by a rounding error where the distance is zero.
    return torch.cdist(_rows(images), _rows(others), compute_mode="donot_use_mm_for_euclid_dist")


def _share(apart: Tensor, order: Tensor) -> Tensor:
    """Return each sample's distance to the nearest of the first half, as a share of the sum with the second."""
    first, second = (apart[:, part].min(1).values for part in order.chunk(2))
    both = first + second
    return torch.where(both > 0, first / both.clamp_min(_TINY), 0.5)


def _spread(images: Tensor) -> Tensor:
    """Return each image's mean distance to the others."""
    return _distances(images, images).sum(1) / (len(images) - 1)


def _reading(metric: Metric, each: Tensor, low: float | None, high: float | None, chance: float) -> Reading:
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
