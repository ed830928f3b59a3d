"""Statistics error: how far a batch's means and variances are from those that an attack read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

import torch
from torch import Tensor

from leaktight.core.attack import Guess, GuessedStatistics
from leaktight.core.message import Tensors
from leaktight.core.metric import Direction, Metric, Reading
from leaktight.core.random import Stream, stream
from leaktight.core.run import GroundTruth
from leaktight.core.task import Batch
from leaktight.statistics.interval import bootstrap


def statistics_error(guess: Tensors, truth: Tensors) -> float:
    r"""Return the mean over tensors of \(\lVert \hat s - s \rVert / \lVert s \rVert\), for those that both have.

    Args:
        guess: guessed statistics, by name.
        truth: the real ones; at least one of the same name.

    Example:
        >>> statistics_error({"mean": torch.tensor([3.0, 4.4])}, {"mean": torch.tensor([3.0, 4.0])})
        0.08...
    """
    errors = [_relative(guess[name], truth[name]) for name in truth if name in guess]
    return sum(errors) / len(errors)


class StatisticsError(Metric):
    """Relative error of the means and variances that an attack read of a batch, averaged over layers, then messages.

    0 is an exact answer. The chance level is the error of the running statistics that were handed out before the
    message: what anybody would guess a batch's own to be.

    Example:
        >>> StatisticsError().leaks
        'low'
    """

    kind: Literal["statistics_error"] = "statistics_error"
    title: ClassVar[str] = "error of batch statistics"
    unit: ClassVar[str] = "%"
    digits: ClassVar[int | None] = 2
    claim: ClassVar[str] = "statistics"
    leaks: ClassVar[Direction] = "low"

    def grade(
        self, guess: Guess, truth: Sequence[GroundTruth], rng: Stream, public: Batch | None = None
    ) -> tuple[Reading, ...]:
        """Return one reading; none for a guess of something else, or where nobody has such statistics."""
        if not isinstance(guess, GuessedStatistics):
            return ()
        rows = [
            (statistics_error(values, ground_truth.statistics), statistics_error(blind, ground_truth.statistics))
            for values, blind, ground_truth in zip(guess.values, guess.blind, truth, strict=True)
            if values.keys() & ground_truth.statistics.keys()
        ]
        if not rows:
            return ()
        errors, chances = torch.tensor(rows, dtype=torch.float64).unbind(1)
        low, high = bootstrap(errors, stream(rng.initial_seed(), "interval", self.kind))
        reading = Reading(
            name=self.kind,
            value=errors.mean().item(),
            low=low,
            high=high,
            n=len(rows),
            chance=chances.mean().item(),
            leaks=self.leaks,
            against="used",
            each=tuple(errors.tolist()),
        )
        return (reading,)


def _relative(guess: Tensor, truth: Tensor) -> float:
    real = truth.detach().double().cpu()
    return float((guess.detach().double().cpu() - real).norm() / real.norm().clamp_min(1e-30))
