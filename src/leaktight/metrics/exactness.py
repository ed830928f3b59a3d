"""Exactness: how many examples an attack recovers exactly, and how often it certifies a wrong one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

import torch
from torch import Tensor

from leaktight.core.attack import Guess, Reconstruction
from leaktight.core.metric import Direction, Metric, Reading
from leaktight.core.random import Stream, stream
from leaktight.core.run import GroundTruth
from leaktight.core.task import Batch
from leaktight.metrics.comparison import AGAINST, Against, read, share_interval
from leaktight.statistics.interval import bootstrap

EXACT = 0.01
"""How far off the worst entry of an exact answer may be, in the data's units: a hundredth of a pixel's range."""


def is_matched(examples: Tensor, others: Tensor) -> Tensor:
    """Return for each example whether one of the others equals it, to within 0.01 in every entry.

    Example:
        >>> is_matched(torch.tensor([[0.0, 1.0], [0.5, 0.5]]), torch.tensor([[0.009, 1.0]]))
        tensor([ True, False])
    """
    if not len(examples) or not len(others):
        return torch.zeros(len(examples), dtype=torch.bool)
    apart = torch.cdist(
        examples.detach().cpu().double().flatten(1), others.detach().cpu().double().flatten(1), p=torch.inf
    )
    return apart.amin(1) < EXACT


class ExactShare(Metric):
    """The share of true examples that some answer gives exactly: no entry is off by 0.01 or more.

    For attacks that certify their answers. An answer without any message is never exact, so that its chance level is 0.
    Of more answers than examples only the first ones count.

    Example:
        >>> ExactShare().leaks
        'high'
    """

    kind: Literal["exact_share"] = "exact_share"
    title: ClassVar[str] = "exact, share"
    unit: ClassVar[str] = "%"
    digits: ClassVar[int | None] = 1
    claim: ClassVar[str] = "inputs"
    leaks: ClassVar[Direction] = "high"

    def grade(
        self, guess: Guess, truth: Sequence[GroundTruth], rng: Stream, public: Batch | None = None
    ) -> tuple[Reading, ...]:
        """Return a reading against the raw and one against the used examples; none if the attack certifies nothing."""
        if not isinstance(guess, Reconstruction) or guess.certified is None:
            return ()
        readings = []
        for against in AGAINST:
            truths = _truths(truth, against)
            matched = [
                is_matched(batch, inputs[: len(batch)]) for batch, inputs in zip(truths, guess.inputs, strict=True)
            ]
            values, sizes = (
                torch.cat([*matched, torch.zeros(0)]).double(),
                torch.tensor([len(batch) for batch in truths]),
            )
            if len(values):
                interval = share_interval(values, torch.repeat_interleave(sizes))
                readings.append(read(self, values, interval, 0.0, against))
        return tuple(readings)


class FalseAnswers(Metric):
    """How many answers the attack certified for a message that equal no true example, neither raw nor used.

    A certificate is the attacker's own knowledge. One that is often wrong is none, and an attacker could not choose by
    it.

    Example:
        >>> FalseAnswers().leaks is None
        True
    """

    kind: Literal["false_answers"] = "false_answers"
    claim: ClassVar[str] = "inputs"
    leaks: ClassVar[Direction | None] = None

    def grade(
        self, guess: Guess, truth: Sequence[GroundTruth], rng: Stream, public: Batch | None = None
    ) -> tuple[Reading, ...]:
        """Return the mean over messages; nothing for an attack that certifies nothing."""
        if not isinstance(guess, Reconstruction) or guess.certified is None or not truth:
            return ()
        counts = []
        for place, (inputs, certified) in enumerate(zip(guess.inputs, guess.certified, strict=True)):
            sure = inputs[certified.to(inputs.device)]
            right = torch.stack([is_matched(sure, _truths(truth, against)[place]) for against in AGAINST]).any(0)
            counts.append(float((~right).sum()))
        values = torch.tensor(counts, dtype=torch.float64)
        low, high = bootstrap(values, stream(rng.initial_seed(), "interval", self.kind))
        return (
            Reading(name=self.kind, value=values.mean().item(), low=low, high=high, n=len(values), each=tuple(counts)),
        )


def _truths(truth: Sequence[GroundTruth], against: Against) -> list[Tensor]:
    return [(ground_truth.raw if against == "raw" else ground_truth.used).inputs for ground_truth in truth]
