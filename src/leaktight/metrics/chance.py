"""Chance: the best score of an attacker who saw no message, which an attack has to beat."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor, nn

from leaktight.core.attack import Reconstruction
from leaktight.core.metric import Direction
from leaktight.core.random import Stream, stream
from leaktight.core.run import GroundTruth
from leaktight.core.task import Batch, Normalise
from leaktight.metrics.pairing import arrange_all, blank, is_image, on_screen
from leaktight.priors import Coordinates, network_units
from leaktight.priors.generic import generic_coordinates
from leaktight.priors.moments import class_means

Measure = Callable[[Tensor, Tensor], Tensor]
"""From guessed and true examples to one value for each pair."""

DRAWS = 4
"""How often examples are drawn as an answer; their score is the mean over the draws."""


@dataclasses.dataclass(frozen=True)
class Blind:
    """What an attacker knows of examples without any message, as far as the threat model allows.

    Args:
        public: public examples of the same kind; None for nothing.
        labels: the labels behind each message, if they are given or the attack reads or guesses them; None if it has
            none.
        normalise: what the network does to its inputs first: who knows the network knows its units.
        classes: how many classes there are.
    """

    public: Batch | None = None
    labels: tuple[Tensor, ...] | None = None
    normalise: nn.Module = dataclasses.field(default_factory=nn.Identity)
    classes: int = 0

    @classmethod
    def of(cls, guess: Reconstruction, truth: Sequence[GroundTruth], public: Batch | None) -> Blind:
        """Return what the attacker behind a guess knows, given the public examples that it was granted."""
        task = truth[0].task
        known = public if public is not None and len(public) else None
        return cls(known, guess.labels, task.model.normalise, task.classes)


def chance_level(
    measure: Measure, leaks: Direction, truth: Tensor, messages: Tensor, blind: Blind, rng: Stream
) -> float:
    """Return the best mean value that an answer made without any message gets: that of `chance_each`.

    Example:
        >>> from leaktight.metrics.image import mse
        >>> dark, messages = torch.full((2, 1, 4, 4), 0.1).double(), torch.arange(2)
        >>> public = Batch(torch.full((3, 1, 4, 4), 0.2), torch.zeros(3, dtype=torch.long))
        >>> levels = [chance_level(mse, "low", dark, messages, Blind(known), stream(0)) for known in (None, public)]
        >>> [round(level, 4) for level in levels]
        [0.0529, 0.01]
    """
    return chance_each(measure, leaks, truth, messages, blind, rng).mean().item()


def chance_each(
    measure: Measure, leaks: Direction, truth: Tensor, messages: Tensor, blind: Blind, rng: Stream
) -> Tensor:
    """Return for each example what the answer gets that is the best of those made without any message.

    Everybody can answer the blank example, the mean of the `generic` prior (a grey of 0.43 for colour and 0.33 for one
    channel), the middle of the units that the network normalises to, and for images draws of that prior and white
    noise. Who has public data can answer each channel's mean in it, its mean example, and examples drawn from it; who
    has labels too, the mean example of each class. The mean example has the least squared error, but no structure: an
    attack that ends in noise may beat it in SSIM. Answers that differ within a message are paired one to one like any
    guess, which lifts their score as it lifts the score of n wrong guesses.

    Args:
        measure: the metric, as a function.
        leaks: which of two values is the better answer's.
        truth: the true examples of all messages.
        messages: the number of the message that each is behind, in rising order.
        blind: what the attacker knows without a message; public examples have the shape of the truth.
        rng: what the draws derive from; they are the same whichever metrics were graded before.
    """
    scores = [measure(answer.to(truth).expand_as(truth), truth) for answer in _constant(truth, blind)]
    # The last messages may have no examples, and then no number.
    truths = torch.split(truth, torch.bincount(messages, minlength=len(blind.labels or ())).tolist())
    for answers in _several(truths, blind, stream(rng.initial_seed(), "chance")):
        each = [measure(arrange_all(answer, truths)[0], truth) for answer in answers]
        scores.append(torch.stack(each).mean(0))
    means = torch.stack([score.double().mean() for score in scores])
    return scores[int(means.argmax() if leaks == "high" else means.argmin())]


def _constant(truth: Tensor, blind: Blind) -> Iterator[Tensor]:
    """Return the answers that are the same for every example."""
    shape = tuple(truth.shape[1:])
    yield blank(truth[:1])
    prior = generic_coordinates(shape, blind.normalise)
    yield prior.decode(torch.zeros(1, prior.width), torch.zeros(1, 1))
    if isinstance(blind.normalise, Normalise):
        yield network_units(blind.normalise, shape)[0]
    if blind.public is not None:
        mean = blind.public.inputs.mean(0, keepdim=True, dtype=truth.dtype)
        yield mean
        if mean.dim() > 2:
            yield mean.mean(tuple(range(2, mean.dim())), keepdim=True)


def _several(truths: Sequence[Tensor], blind: Blind, draws: Stream) -> Iterator[list[list[Tensor]]]:
    """Return the answers that differ from example to example, by message, in each case as often as they are drawn."""
    shape, sizes = tuple(truths[0].shape[1:]), [len(part) for part in truths]
    if is_image(shape):
        prior = generic_coordinates(shape, blind.normalise)
        yield [[on_screen(_draw(prior, size, draws)) for size in sizes] for _ in range(DRAWS)]
        yield [[torch.rand(size, *shape, generator=draws) for size in sizes] for _ in range(DRAWS)]
    if blind.public is None:
        return
    inputs, labels = blind.public.inputs, blind.public.labels
    yield [[inputs[torch.randint(len(inputs), (size,), generator=draws)] for size in sizes] for _ in range(DRAWS)]
    if blind.labels is not None and not labels.is_floating_point():
        # A label that nobody could read, -1, stands last: its mean is that of all.
        means = torch.cat(
            [class_means(inputs.flatten(1), labels, blind.classes, 0.0), inputs.flatten(1).mean(0, keepdim=True)]
        )
        guessed = [given.argmax(1) if given.dim() == 2 else given for given in blind.labels]
        yield [[means[given.to(means.device)].view(-1, *shape) for given in guessed]]


def _draw(prior: Coordinates, size: int, draws: Stream) -> Tensor:
    """Return so many examples of a prior that is the standard normal law in its coordinates."""
    return prior.decode(torch.randn(size, prior.width, generator=draws), torch.zeros(size, 1))
