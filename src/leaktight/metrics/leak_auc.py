"""Leak AUC: how well scores tell the positives of a training step from its negatives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal

import torch
from torch import Tensor

from leaktight.core.attack import Guess, LabelScores
from leaktight.core.errors import InvalidValue, Refusal
from leaktight.core.metric import Direction, Metric, Quantity, Reading
from leaktight.core.random import Stream, stream
from leaktight.core.run import GroundTruth
from leaktight.core.task import Batch
from leaktight.metrics.null_auc import null_quantile
from leaktight.statistics.auc import auc
from leaktight.statistics.interval import Interval

TAIL = 0.95
# Draws held in memory at once: 32 MB.
_RESAMPLES, _DRAWS = 2000, 4_000_000


class LeakAUC(Metric):
    r"""The area under the ROC curve of an attack's scores against the true labels, in each training step by itself.

    `leak_auc` is the median over steps, with the value of each; `leak_auc_q95` is the 95 % quantile, what leaks in the
    worst steps. For an attack that cannot know which side is positive each step counts as \(0.5 + |AUC - 0.5|\), and so
    does each step of any attack at a layer before the cut: there the attacker's own slopes may turn the order round,
    and an AUC far below a half tells as much.

    The chance level is what the same quantile would be if the scores knew nothing, for as many positives and negatives:
    0.5 for the median, and above it for the 95 % quantile and wherever the sign is unknown, the more so the fewer
    positives a batch has. At a layer before the cut, where the attacker's own inputs have a part, it is at least what
    the attack reaches there with the rows of the message dealt out to other examples. The interval resamples steps;
    steps that follow one another are not quite independent, which makes it somewhat narrow.

    Left out are steps whose scored examples are all of one class. Ties count half. A reading without a layer is that of
    the cut itself.

    Example:
        >>> LeakAUC().leaks, LeakAUC.claim
        ('high', 'scores')

    Differs from the paper: It does not fold the AUC at layers before the cut. It plots every step; the published code
    sums up by the 95 % quantile over training.

    References:
        Li et al., Label Leakage and Protection in Two-party Split Learning, 2021, Section 2.2 (leak AUC) and Fig. 2.
    """

    kind: Literal["leak_auc"] = "leak_auc"
    claim: ClassVar[str] = "scores"
    leaks: ClassVar[Direction] = "high"

    @classmethod
    def quantities(cls) -> Mapping[str, Quantity]:
        """Return what it reads, by the names of its readings."""
        return {
            "leak_auc": Quantity("leak AUC", digits=2, leaks="high"),
            "leak_auc_q95": Quantity("leak AUC, 95 % quantile", digits=2, leaks="high"),
        }

    def grade(
        self, guess: Guess, truth: Sequence[GroundTruth], rng: Stream, public: Batch | None = None
    ) -> tuple[Reading, ...]:
        """Return median and 95 % quantile for each layer; nothing for a guess that does not score labels."""
        if not isinstance(guess, LabelScores) or not truth:
            return ()
        positive = [(ground_truth.raw.labels == 1).cpu() for ground_truth in truth]
        readings: list[Reading] = []
        for place, layer in enumerate(guess.layers):
            signed = guess.signed and layer is None
            each, sizes = _steps(guess.values, positive, place, signed)
            if not sizes:
                raise Refusal(
                    f"leak_auc needs a step with scored examples of both classes. Got none in {len(truth)}; use "
                    "larger batches."
                )
            blind = each[:0]
            if guess.blind and layer is not None:
                blind, _ = _steps(guess.blind, positive, place, signed)
            for name, share in ((self.kind, 0.5), (f"{self.kind}_q95", TAIL)):
                chances = [null_quantile(sizes, share, signed=signed)]
                chances += [torch.quantile(blind, share).item()] if len(blind) else []
                low, high = quantile_interval(each, share, stream(rng.initial_seed(), "interval", self.kind))
                readings.append(
                    Reading(
                        name=name,
                        value=torch.quantile(each, share).item(),
                        low=low,
                        high=high,
                        n=len(each),
                        chance=max(chances),
                        leaks=self.leaks,
                        against="raw",
                        layer=layer,
                        each=tuple(each.tolist()) if share == 0.5 else (),
                    )
                )
        return tuple(readings)


def _steps(
    values: Sequence[Tensor], positive: Sequence[Tensor], place: int, signed: bool
) -> tuple[Tensor, list[tuple[int, int]]]:
    """Return the AUC at one layer of each step that has one, and how many positives and negatives were scored there."""
    pairs = zip(values, positive, strict=True)
    steps = [step for scores, labels in pairs if (step := _step(scores[place].detach().cpu(), labels)) is not None]
    each = torch.tensor([value for value, _ in steps], dtype=torch.float64)
    return each if signed else 0.5 + (each - 0.5).abs(), [size for _, size in steps]


def _step(scores: Tensor, positive: Tensor) -> tuple[float, tuple[int, int]] | None:
    """Return the AUC of one step and how many positives and negatives were scored; None if one of them is missing."""
    if scores.shape != positive.shape:
        raise InvalidValue(
            f"leak_auc needs one score for each of {len(positive)} examples. Got shape {tuple(scores.shape)} instead."
        )
    scored = ~torch.isnan(scores)
    labels = positive[scored]
    positives = int(labels.sum())
    negatives = len(labels) - positives
    if not positives or not negatives:
        return None
    return auc(scores[scored], labels), (positives, negatives)


def quantile_interval(values: Tensor, share: float, rng: Stream) -> Interval:
    """Return the 95 % percentile bootstrap interval of a quantile; one value alone gives none.

    Args:
        values: one number for each step.
        share: which quantile, in (0, 1).
        rng: where the resamples come from.

    Example:
        >>> quantile_interval(torch.tensor([0.75, 0.75, 0.75]), 0.5, stream(0, "interval"))
        (0.75, 0.75)
    """
    if len(values) < 2:
        return None, None
    values = values.double()
    chunk = max(1, _DRAWS // len(values))
    quantiles = []
    for start in range(0, _RESAMPLES, chunk):
        drawn = torch.randint(len(values), (min(chunk, _RESAMPLES - start), len(values)), generator=rng)
        quantiles.append(torch.quantile(values[drawn], share, dim=1))
    ends = torch.quantile(torch.cat(quantiles), torch.tensor([0.025, 0.975], dtype=torch.float64))
    measured = torch.quantile(values, share).item()
    return min(ends[0].item(), measured), max(ends[1].item(), measured)
