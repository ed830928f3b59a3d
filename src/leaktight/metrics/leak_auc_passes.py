"""Leak AUC over passes: how well the scores of a row in all messages about it, taken together, tell its label."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import NormalDist
from typing import ClassVar, Literal

import torch
from torch import Tensor

from leaktight.core.attack import Guess, LabelScores, RowScores
from leaktight.core.metric import Direction, Metric, Quantity, Reading
from leaktight.core.random import Stream
from leaktight.core.run import GroundTruth
from leaktight.core.task import Batch
from leaktight.metrics.null_auc import null_quantile
from leaktight.statistics.auc import auc, delong
from leaktight.statistics.interval import Interval

PASSES, FEATURES, THEORY, CEILING = "leak_auc_passes", "leak_auc_features", "leak_auc_theory", "leak_auc_ceiling"
_SURE = 1e-9


class LeakAUCPasses(Metric):
    r"""The area under the ROC curve over rows, for an attacker who adds up each row's scores over all passes.

    For each layer:

    - `leak_auc_passes`, after all passes, with DeLong's interval over rows; `each` is the AUC after 1, 2, ... passes.
      Where an attacker cannot know which side is positive, and before the cut, it counts as \(0.5 + |AUC - 0.5|\): one
      sign for everything, as it has fixed that between messages. The chance level is 0.5, or the median of the folded
      AUC of scores that know nothing; where the attacker's own features have a part, before the cut, at least
      `leak_auc_features`.
    - `leak_auc_features`, what the attacker gets without the messages about a row: from rows of the messages dealt out
      by chance, or from its own features alone. At the cut it has no sign to choose, and the chance level is 0.5.
    - `leak_auc_theory`, what k independent messages predict from one. The AUC a of a single message, the mean over
      passes, is that of Gaussian scores with \(d' = \sqrt 2 \, \Phi^{-1}(a)\), and k of them add up to
      \(\Phi(d' \sqrt{k / 2})\); k is how often a row was seen on average. Only where passes are added up.
    - `leak_auc_ceiling`, the largest AUC that the defence's stated bound allows, \(1 - (1 - TV)^2 / 2\) with
      \(TV = 1 - 2 L\). `each` is what is left of it after 1, 2, ... passes, as divergences add. Only where the defence
      states a bound.

    Nothing is read where no row was seen in two messages. Rows whose label was told are left out. The interval speaks
    of the rows, not of other training runs.

    Example:
        >>> LeakAUCPasses().leaks, LeakAUCPasses.claim
        ('high', 'scores')

    Differs from the paper: It looks at each message by itself. That scores can be added up is ours.

    References:
        DeLong, DeLong and Clarke-Pearson, Comparing the Areas under Two or More Correlated ROC Curves, 1988; Li et al.,
        Label Leakage and Protection in Two-party Split Learning, 2021, theorem 1.
    """

    kind: Literal["leak_auc_passes"] = "leak_auc_passes"
    claim: ClassVar[str] = "scores"
    leaks: ClassVar[Direction] = "high"

    @classmethod
    def quantities(cls) -> Mapping[str, Quantity]:
        """Return what it reads, by the names of its readings."""
        return {
            PASSES: Quantity("leak AUC, all passes added up", digits=2, leaks="high"),
            FEATURES: Quantity("leak AUC of features alone", digits=2),
            THEORY: Quantity("leak AUC that theory predicts", digits=2),
            CEILING: Quantity("leak AUC that the bound allows", digits=2),
        }

    def grade(
        self, guess: Guess, truth: Sequence[GroundTruth], rng: Stream, public: Batch | None = None
    ) -> tuple[Reading, ...]:
        """Return the readings of each layer; nothing for a guess that does not score rows over passes."""
        if not isinstance(guess, LabelScores) or guess.passes is None or not truth:
            return ()
        scores = guess.passes
        times = torch.bincount(torch.cat([rows.cpu() for rows in scores.rows]), minlength=scores.values.shape[2])
        if times.max() < 2:
            return ()
        positive = _labels(scores, truth)
        readings: list[Reading] = []
        for place, layer in enumerate(guess.layers):
            values, blind = scores.values[place].cpu(), scores.blind[place].cpu()
            scored = ~values.isnan().all(0)
            labels = positive[scored]
            if not 0 < int(labels.sum()) < len(labels):
                continue
            folded = not guess.signed or layer is not None
            readings += _layer(values[:, scored], blind[:, scored], labels, layer, folded, scores.adds)
            if scores.adds:
                times_seen = times[scored].double().mean().item()
                readings.append(_theory(values[:, scored], labels, times_seen, layer, folded))
            bound = truth[0].bound
            if bound is not None:
                each = tuple(bound.ceiling(seen) for seen in range(1, len(values) + 1))
                readings.append(Reading(name=CEILING, value=bound.ceiling(), n=len(labels), layer=layer, each=each))
        return tuple(readings)


def _layer(
    values: Tensor, blind: Tensor, labels: Tensor, layer: str | None, folded: bool, adds: bool
) -> tuple[Reading, Reading]:
    """Return what is known of the rows at one layer after all passes, and without the messages."""
    each = [_after(values[: seen + 1], adds) for seen in range(len(values))]
    value, interval, sign = _auc(each[-1], labels, folded)
    # Of rows dealt out by chance no sign is better than the other.
    without, around, _ = _auc(_after(blind, adds), labels, folded=layer is not None)
    positives = int(labels.sum())
    chance = null_quantile([(positives, len(labels) - positives)], 0.5, signed=not folded)
    reading = Reading(
        name=PASSES,
        value=value,
        low=interval[0],
        high=interval[1],
        n=len(labels),
        chance=max(chance, without) if layer is not None else chance,
        leaks="high",
        against="raw",
        layer=layer,
        each=tuple(auc(sign * scores, labels) for scores in each),
    )
    features = Reading(
        name=FEATURES,
        value=without,
        low=around[0],
        high=around[1],
        n=len(labels),
        chance=0.5 if layer is None else chance,
        against="raw",
        layer=layer,
    )
    return reading, features


def _theory(values: Tensor, labels: Tensor, times: float, layer: str | None, folded: bool) -> Reading:
    """Return what the mean AUC of a single pass predicts for all of them."""
    total = _auc(_after(values, adds=True), labels, folded)
    each = []
    for scores in values:
        scored = ~scores.isnan()
        if 0 < int(labels[scored].sum()) < int(scored.sum()):
            each.append(auc(total[2] * scores[scored], labels[scored]))
    single = sum(each) / len(each)
    normal = NormalDist()
    value = normal.cdf(math.sqrt(times) * normal.inv_cdf(min(max(single, _SURE), 1 - _SURE)))
    return Reading(name=THEORY, value=value, n=len(labels), layer=layer)


def _after(values: Tensor, adds: bool) -> Tensor:
    """Return what is known of each row after some passes: the sum, or the latest; 0 for a row not seen yet."""
    if adds:
        return values.nansum(0)
    last = torch.zeros_like(values[0])
    for scores in values:
        last = torch.where(scores.isnan(), last, scores)
    return last


def _auc(scores: Tensor, labels: Tensor, folded: bool) -> tuple[float, Interval, float]:
    """Return AUC, interval, and the sign that the scores were taken with."""
    value, interval = delong(scores, labels)
    if not folded or value >= 0.5:
        return value, interval, 1.0
    return *delong(-scores, labels), -1.0


def _labels(scores: RowScores, truth: Sequence[GroundTruth]) -> Tensor:
    """Return which rows are positive."""
    labels = torch.zeros(scores.values.shape[2], dtype=torch.bool)
    for rows, ground_truth in zip(scores.rows, truth, strict=True):
        labels[rows.cpu()] = (ground_truth.raw.labels == 1).cpu()
    return labels
