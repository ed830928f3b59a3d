"""Label posterior: how likely each row is positive over all messages, by the noise that the defence states."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from leaktight.attacks.clustering import Clustering, leading_direction
from leaktight.attacks.label_attack import cut_gradients
from leaktight.attacks.row_totals import RowTotals, row_numbers, worth_adding
from leaktight.core.attack import Attack, LabelScores, Principle, RowScores
from leaktight.core.channel import Belief, Noise, push_all
from leaktight.core.defence import Chain, Defence, Undefended
from leaktight.core.errors import Refusal
from leaktight.core.random import Stream
from leaktight.core.threat import Hints, Knows, View
from leaktight.defences.cut_gradient import CutDefence

_NAME = "cut"
_LEAST = 1e-6
_MOST = 20.0
_SHARES = 0.02, 0.98
_MEMORY = 0.9
_NOBODY = Hints(torch.empty(0, dtype=torch.long), torch.empty(0, dtype=torch.long))


class LabelPosterior(Attack):
    r"""Weigh how likely each row is positive under the law that the defence states, without knowing any label.

    In message t rows of class k have mean \(\mu_{tk}\) and the noise \(\Sigma_{tk}\) that the defence's `cut_channel`
    states for the clean rows and labels that are likely at the time; what it does not explain of the spread is that of
    the clean rows, \(s_t I\). With the unit vector \(w_t\) along \(\mu_{t1} - \mu_{t0}\), or, where the stated noise
    lies along a direction, that in which the message spreads most,

    .. math:: z_{ti} =
        \frac{\langle w_t, \tilde g_{ti} \rangle - m_t}{\sqrt{\langle w_t, \bar\Sigma_t w_t \rangle + s_t}}, \qquad
        \log \frac{p(\tilde g_{ti} \mid 1)}{p(\tilde g_{ti} \mid 0)} = d \, z_{ti}

    for classes d standard deviations apart with \(m_t\) in the middle, and of each row
    \(\log \frac{q_i}{1 - q_i} = \log \frac{p}{1 - p} + \sum_t d \, z_{ti}\): log ratios add up over all passes in which
    the row was seen. Means, spreads, d and p follow from the \(q_i\), and these from them (expectation and
    maximisation); means of a message rest on what all others say of its rows, and are smoothed over neighbouring
    messages. The start, and with it the sign, is what `clustering` makes of the same messages, added up by continuity;
    which side is positive stays unknown.

    Args:
        iterations: how often means and posteriors follow from each other, at least 1.

    Example:
        >>> from leaktight.defences import GaussianNoise, SumKL
        >>> LabelPosterior().adapts_to(SumKL()), LabelPosterior().adapts_to(GaussianNoise())
        (True, False)

    Differs from the paper: It has no such attack; it bounds what any attack on one message can do.

    References:
        Li et al., Label Leakage and Protection in Two-party Split Learning, 2021, Section 3.1; Dempster, Laird and
        Rubin, Maximum Likelihood from Incomplete Data via the EM Algorithm, 1977.
    """

    kind: Literal["label_posterior"] = "label_posterior"
    claims: ClassVar[frozenset[str]] = frozenset({"scores"})
    goals: ClassVar[tuple[str, ...]] = ("tell examples apart",)
    principle: ClassVar[Principle] = "statistic"
    iterations: int = Field(3, ge=1)

    @property
    def needs(self) -> frozenset[Knows]:
        """The defence."""
        return frozenset({Knows.DEFENCE})

    def models(self, defence: Defence) -> bool:
        """A defence that states what it does to cut gradients."""
        return isinstance(defence, CutDefence)

    def run(self, view: View, rng: Stream) -> LabelScores:
        """Weigh the rows of all messages together, and again with the rows of each dealt out by chance."""
        messages = cut_gradients(view, self.kind)
        defence = _stated_defence(view.defence or Undefended())
        cuts = [_unit(next(iter(message.tensors.values()))) for message in messages]
        numbers = row_numbers(view, messages)
        # Who does not know the rows takes those of each message for new ones.
        sizes = torch.tensor([0, *(len(cut) for cut in cuts)]).cumsum(0)
        apart = tuple(torch.arange(int(sizes[at]), int(sizes[at + 1])) for at in range(len(cuts)))
        rows, passes = numbers if numbers is not None else (apart, tuple(range(len(cuts))))
        dealt = [cut[torch.randperm(len(cut), generator=rng)] for cut in cuts]
        ratios, blind = (self._weigh(each, rows, passes, defence) for each in (cuts, dealt))
        totals = None
        if numbers is not None and worth_adding(rows, passes, layers=1):
            totals = RowScores(rows, _by_pass(ratios, rows, passes), _by_pass(blind, rows, passes))
        keys = tuple(message.key for message in messages)
        return LabelScores(keys, tuple(ratio[None] for ratio in ratios), signed=False, passes=totals)

    def _weigh(
        self, cuts: Sequence[Tensor], rows: Sequence[Tensor], passes: Sequence[int], defence: CutDefence | None
    ) -> list[Tensor]:
        """Return the log ratio of each row in each message."""
        count = 1 + max(int(own.max()) for own in rows)
        start = RowTotals(1, sorted(set(passes)), count, turns=True)
        for cut, own, number in zip(cuts, rows, passes, strict=True):
            start.add(0, number, own, Clustering().score(cut, _NOBODY), cut)
        aligned, numbers = start.finish(torch.zeros(count, dtype=torch.bool))[0], sorted(set(passes))
        ratios = first = [aligned[numbers.index(number), own] for own, number in zip(rows, passes, strict=True)]
        several = torch.bincount(torch.cat(list(rows)), minlength=count) > 1
        share = torch.tensor(0.5, dtype=torch.float64)
        for _ in range(self.iterations):
            sums = torch.zeros(count, dtype=torch.float64)
            for own, ratio in zip(rows, ratios, strict=True):
                sums[own] += ratio
            likely = [
                torch.sigmoid(share.logit() + sums[own] - torch.where(several[own], ratio, 0.0))
                for own, ratio in zip(rows, ratios, strict=True)
            ]
            fits = _fits(cuts, likely)
            places = [_place_rows(*each, defence) for each in zip(cuts, likely, fits, first, strict=True)]
            gap = torch.stack([_gap(*each) for each in zip(places, likely, strict=True)]).mean().abs()
            ratios = [(gap.clamp_min(_LEAST) * ratio).clamp(-_MOST, _MOST) for ratio in places]
            share = torch.cat(likely).mean().clamp(*_SHARES)
        return ratios


@dataclasses.dataclass(frozen=True)
class _Fit:
    """What is likely of one message: the means of its two classes, and the mean square of an entry around them."""

    means: Tensor
    spread: Tensor

    @classmethod
    def of(cls, cut: Tensor, likely: Tensor) -> _Fit:
        weights = torch.stack([1 - likely, likely])
        sizes = weights.sum(1, keepdim=True).clamp_min(1e-9)
        means = weights @ cut / sizes
        away = torch.stack([(weights[label] @ (cut - means[label]).square()).mean() for label in (0, 1)])
        return cls(means, away / sizes[:, 0])


def _fits(cuts: Sequence[Tensor], likely: Sequence[Tensor]) -> list[_Fit]:
    """Return the fit of each message; means are smoothed over neighbouring messages, as models change slowly."""
    own = [_Fit.of(*each) for each in zip(cuts, likely, strict=True)]
    means = torch.stack([fit.means for fit in own])
    smooth = (_running_mean(means) + _running_mean(means.flip(0)).flip(0)) / 2
    return [_Fit(mean, fit.spread) for mean, fit in zip(smooth, own, strict=True)]


def _running_mean(values: Tensor) -> Tensor:
    """Return the running mean of values along the first dimension."""
    total, weight, means = torch.zeros_like(values[0]), 0.0, []
    for value in values:
        total, weight = _MEMORY * total + value, _MEMORY * weight + 1
        means.append(total / weight)
    return torch.stack(means)


def _place_rows(cut: Tensor, likely: Tensor, fit: _Fit, start: Tensor, defence: CutDefence | None) -> Tensor:
    """Return where each row lies on the line that divides the classes, in standard deviations from the middle."""
    laws, spread = _laws(cut, likely, fit, defence)
    way = torch.nn.functional.normalize(fit.means[1] - fit.means[0], dim=0)
    if any(law.along is not None for law in laws):
        # Noise along the line shows it better than the difference that it hides, but for its sign.
        way = leading_direction(cut)
        way = way * torch.sign((cut @ way) @ start)
    variance = sum(_along(law, way) for law in laws) / 2 + spread
    return (cut @ way - (fit.means @ way).mean()) / variance.sqrt()


def _laws(cut: Tensor, likely: Tensor, fit: _Fit, defence: CutDefence | None) -> tuple[tuple[Noise, Noise], Tensor]:
    """Return the stated noise of each class, given clean rows that explain the message, and their spread."""
    width, hard = cut.shape[1], (likely > likely.mean()).long()
    labels = torch.cat([hard, torch.arange(2)])
    away = cut - fit.means[hard]
    shrink = torch.zeros(len(cut), 1, dtype=cut.dtype)
    least = _LEAST * fit.spread.max().clamp_min(1e-300)
    laws, spread = (Noise(), Noise()), fit.spread.mean().clamp_min(least)
    # First for rows that are their class's mean, then with as much spread around it as that noise leaves unexplained.
    for _ in range(2 if defence is not None else 0):
        laws = _class_noise(defence, torch.cat([fit.means[hard] + shrink * away, fit.means]), labels)
        sizes = torch.stack([_variance(law, cut) + _length(law, cut) / width for law in laws])
        left = (fit.spread - sizes).clamp_min(0.0)
        shrink = (left / fit.spread.clamp_min(least)).sqrt()[hard][:, None]
        spread = left.mean().clamp_min(least)
    return laws, spread


def _class_noise(defence: CutDefence | None, clean: Tensor, labels: Tensor) -> tuple[Noise, Noise]:
    """Return the law of the noise on the last two rows, which are the means of the classes."""
    if defence is None:
        return Noise(), Noise()
    channel = defence.cut_channel({_NAME: clean}, labels)
    noise = push_all(channel.message, Belief({_NAME: clean})).noise_of(_NAME)
    one, other = (_row(noise, place) for place in (len(clean) - 2, len(clean) - 1))
    return one, other


def _row(noise: Noise, place: int) -> Noise:
    variance = noise.variance[place] if isinstance(noise.variance, Tensor) and noise.variance.dim() else noise.variance
    return dataclasses.replace(noise, variance=variance, along=None if noise.along is None else noise.along[place])


def _variance(law: Noise, like: Tensor) -> Tensor:
    return torch.as_tensor(law.variance, dtype=like.dtype).flatten()[-1]


def _length(law: Noise, like: Tensor) -> Tensor:
    return like.new_zeros(()) if law.along is None else law.along.square().sum()


def _along(law: Noise, way: Tensor) -> Tensor:
    """Return the variance of the noise along a unit direction."""
    return _variance(law, way) + (way.new_zeros(()) if law.along is None else (law.along @ way).square())


def _gap(places: Tensor, likely: Tensor) -> Tensor:
    """Return how far the classes' means are apart."""
    return (likely @ places) / likely.sum().clamp_min(1e-9) - ((1 - likely) @ places) / (1 - likely).sum().clamp_min(
        1e-9
    )


def _by_pass(ratios: Sequence[Tensor], rows: Sequence[Tensor], passes: Sequence[int]) -> Tensor:
    numbers = sorted(set(passes))
    table = torch.full((1, len(numbers), 1 + max(int(own.max()) for own in rows)), torch.nan, dtype=torch.float64)
    for values, own, number in zip(ratios, rows, passes, strict=True):
        table[0, numbers.index(number), own] = values
    return table


def _stated_defence(defence: Defence) -> CutDefence | None:
    """Return the one defence that states what it does to cut gradients; None if nothing does anything."""
    links = [
        link
        for link in (defence.links if isinstance(defence, Chain) else (defence,))
        if not isinstance(link, Undefended)
    ]
    if not links:
        return None
    if len(links) > 1 or not isinstance(links[0], CutDefence):
        raise Refusal(
            f"label_posterior needs a defence that states what it does to cut gradients. Got {defence} instead."
        )
    return links[0]


def _unit(cut: Tensor) -> Tensor:
    """Return rows of mean square length 1, flat."""
    rows = cut.flatten(1).double().cpu()
    size = rows.square().sum(1).mean().sqrt()
    return rows / size if size > 0 else rows
