"""Chance: what an attacker who saw no message would score. The best such answer is the level that an attack has to beat."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from leaktight.core.metric import Direction
from leaktight.core.random import Stream, stream
from leaktight.core.task import Batch
from leaktight.metrics.pairing import arrange_all, blank

Measure = Callable[[Tensor, Tensor], Tensor]
"""From guessed and true examples to one value for each pair."""

DRAWS = 4
"""How often public examples are drawn as an answer; their score is the mean over the draws."""


def chance_level(
    measure: Measure, leaks: Direction, truth: Tensor, messages: Tensor, public: Batch | None, rng: Stream
) -> float:
    """Return the best mean value that an answer made without any message gets.

    Such answers are the blank one and, where there is public data, each channel's mean in it, its mean example, and examples drawn
    from it. The mean example has the least squared error, but no structure: an attack that ends in noise may beat it in SSIM. Drawn
    examples are paired one to one within a message like any guess, which lifts their score as it lifts the score of n wrong guesses.

    Args:
        measure: the metric, as a function.
        leaks: which of two values is the better answer's.
        truth: the true examples of all messages.
        messages: the number of the message that each is behind, in rising order.
        public: what anyone knows of such data, in the shape of the truth; None for nothing.
        rng: what the draws derive from; they are the same whichever metrics were graded before.

    Example:
        >>> from leaktight.metrics.image import mse
        >>> dark, messages = torch.full((2, 1, 4, 4), 0.1).double(), torch.arange(2)
        >>> public = Batch(torch.full((3, 1, 4, 4), 0.2), torch.zeros(3))
        >>> levels = [chance_level(mse, "low", dark, messages, known, stream(0)) for known in (None, public)]
        >>> [round(level, 4) for level in levels]
        [0.16, 0.01]
    """
    scores = [measure(answer.expand_as(truth), truth).mean().item() for answer in _constant(truth, public)]
    if public is not None and len(public):
        drawn = [measure(answer, truth).mean().item() for answer in _drawn(truth, messages, public, rng)]
        scores.append(sum(drawn) / len(drawn))
    return max(scores) if leaks == "high" else min(scores)


def _constant(truth: Tensor, public: Batch | None) -> Iterator[Tensor]:
    """Return the answers that are the same for every example."""
    yield blank(truth[:1])
    if public is not None and len(public):
        mean = public.inputs.mean(0, keepdim=True, dtype=truth.dtype).to(truth.device)
        yield mean
        if mean.dim() > 2:
            yield mean.mean(tuple(range(2, mean.dim())), keepdim=True)


def _drawn(truth: Tensor, messages: Tensor, public: Batch, rng: Stream) -> Iterator[Tensor]:
    """Return answers that are public examples, other ones for each message."""
    draws = stream(rng.initial_seed(), "chance")
    truths = torch.split(truth, torch.bincount(messages).tolist())
    for _ in range(DRAWS):
        guesses = [public.inputs[torch.randint(len(public), (len(part),), generator=draws)] for part in truths]
        yield arrange_all(guesses, truths)[0]
