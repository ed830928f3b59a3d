"""Sample distance: how near pictures that an attacker made up come to private examples, and how much they differ.

None of them stands for a particular example, so nothing is paired.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar, Literal

import torch
from torch import Tensor

from leaktight.core.attack import GuessedSamples
from leaktight.core.errors import Refusal
from leaktight.core.metric import Direction, Metric, Reading
from leaktight.core.random import Stream, draw, stream
from leaktight.core.run import GroundTruth
from leaktight.core.task import Batch
from leaktight.metrics.generated import Generated, own_batches, sample_reading

_TINY = 1e-12
_DEALS = 100
_MOST = 1000


class NearestPrivate(Generated):
    r"""How much nearer samples come to private examples of the class than to public ones.

    With P private and Q public examples of the class, equally many (at most 1,000), drawn at random from what there is,

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

    def read(self, guess: GuessedSamples, truth: Sequence[GroundTruth], rng: Stream, public: Batch) -> Reading:
        """Return the mean share of distances."""
        private, others = _private_examples(self, guess, truth), public.inputs[public.labels == guess.label]
        return _nearness(self, guess, private, others, rng)


class NearestAny(Generated):
    r"""How much nearer samples come to private examples of any class than to public ones.

    With P the attacked parties' examples of all their classes and Q public examples of these classes, at most 1,000 of
    each, drawn at random and equally many. Who has no say in which class it brings out is judged by all of them. The
    chance level is 1/2.

    Example:
        >>> print(NearestAny())
        nearest_any

    Differs from the paper: It has no such number.
    """

    kind: Literal["nearest_any"] = "nearest_any"
    title: ClassVar[str] = "nearness to private images, any class"
    leaks: ClassVar[Direction] = "low"

    def read(self, guess: GuessedSamples, truth: Sequence[GroundTruth], rng: Stream, public: Batch) -> Reading:
        """Return the mean share of distances."""
        owned = [batch.to(torch.device("cpu")) for batch in own_batches(truth)]
        classes = torch.cat([batch.labels for batch in owned])
        others = public.inputs[torch.isin(public.labels, classes.to(public.labels.device))]
        return _nearness(self, guess, torch.cat([batch.inputs for batch in owned]), others, rng)


class MeanPicture(Generated):
    r"""How far samples are from the nearest private example of the class, relative to the mean of public ones.

    .. math:: \frac1n \sum_i \frac{\min_{p \in P} \lVert x_i - p \rVert}{\min_{p \in P} \lVert \bar q - p \rVert}

    \(\bar q\), the mean of all public examples of the class, is what anybody can draw without an attack: the chance
    level is 1. Pictures that a classifier recognises at a value above 1 are farther from everything private than that
    blur. The interval is the normal one over samples and over draws of the public examples with replacement.

    Example:
        >>> MeanPicture().leaks
        'low'

    Differs from the paper: It has no such number.
    """

    kind: Literal["mean_picture"] = "mean_picture"
    title: ClassVar[str] = "distance to private images, by the mean picture's"
    leaks: ClassVar[Direction] = "low"

    def read(self, guess: GuessedSamples, truth: Sequence[GroundTruth], rng: Stream, public: Batch) -> Reading:
        """Return the mean ratio of distances."""
        private, others = _private_examples(self, guess, truth), public.inputs[public.labels == guess.label].cpu()
        pick = stream(rng.initial_seed(), self.kind)
        draws = torch.randint(len(others), (_DEALS, len(others)), generator=pick)
        means = torch.stack([others.mean(0), *(others[places].mean(0) for places in draws)])
        level, *levels = _distances(means, private).min(1).values.clamp_min(_TINY)
        near = _distances(guess.inputs, private).min(1).values
        each = near / level
        value = each.mean().item()
        spread = (near.mean() / torch.stack(levels)).var().item()
        margin = 1.96 * math.sqrt(each.var().item() / len(each) + spread)
        return sample_reading(self, each, max(0.0, value - margin), value + margin, chance=1.0)


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

    def read(self, guess: GuessedSamples, truth: Sequence[GroundTruth], rng: Stream, public: Batch) -> Reading:
        """Return the relative mean distance."""
        real = _some(_private_examples(self, guess, truth), len(guess.inputs), stream(rng.initial_seed(), self.kind))
        if len(guess.inputs) < 2 or len(real) < 2:
            raise Refusal(f"{self.kind} needs at least 2 samples and 2 private examples of class {guess.label}.")
        each = _spread(guess.inputs) / _spread(real).mean().clamp_min(_TINY)
        margin = 2 * 1.96 * each.std().item() / math.sqrt(len(each))
        value = each.mean().item()
        return sample_reading(self, each, max(0.0, value - margin), value + margin, chance=0.0)


def _nearness(metric: Metric, guess: GuessedSamples, private: Tensor, others: Tensor, rng: Stream) -> Reading:
    """Return by how much samples are nearer to some images than to others, equally many of each."""
    count = min(len(private), len(others), _MOST)
    pick = stream(rng.initial_seed(), metric.kind)
    examples = torch.cat([_some(inputs, count, pick) for inputs in (private, others)])
    apart = _distances(guess.inputs, examples)
    share = _share(apart, torch.arange(2 * count))
    deals = [_share(apart, torch.randperm(2 * count, generator=pick)).mean() for _ in range(_DEALS)]
    value = share.mean().item()
    margin = 1.96 * math.sqrt(share.var().item() / len(share) + torch.stack(deals).var().item())
    return sample_reading(metric, share, max(0.0, value - margin), value + margin, chance=0.5)


def _private_examples(metric: Metric, guess: GuessedSamples, truth: Sequence[GroundTruth]) -> Tensor:
    """Return the attacked parties' own examples of the class."""
    examples = [batch.inputs[batch.labels == guess.label].cpu() for batch in own_batches(truth)]
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
