"""How likely a message is under a belief: the objective of every search that knows the channel."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import torch
import torch.nn.functional as F
from torch import Tensor

from leaktight.channels.law import log_density, log_within
from leaktight.core.channel import Belief, Mask, Noise, Scale
from leaktight.core.message import Tensors

SOFTNESS = 0.05
"""Over which part of the edge an entry of a hidden mask goes from kept to left out, so that a slope leads across."""
SURE = 5.0
"""How many standard deviations of noise an entry may be below the magnitude that it was chosen by."""
UNBOUNDED = 1e30


def negative_log_likelihood(belief: Belief, observed: Tensors, floor: Mapping[str, Scale]) -> Tensor:
    r"""Return minus the logarithm of the likelihood of one message, up to a constant that no candidate changes.

    - An exact entry has a Gaussian law of the floor's standard deviation, which is in every other law too.
    - Gaussian, Laplace, and the exact density of their sum; noise along a direction of each row, by its determinant and
      inverse.
    - A mask that shows: an entry that is not zero was sent. Of one that is zero, what was ranked is at most t, the
      smallest magnitude that came of the mask's tensors (wider by 5 standard deviations of noise that only sent entries
      have): \((|m| - t)_+^2 / 2 f^2\) for floor f if nothing random was ranked, else \(-\log P(|m + n| \le t)\). If
      fewer entries came than go out, the others are zero.
    - A mask that noise hides: \(-\log(w \, p(o - m) + (1 - w) \, p(o))\), where w is how likely the entry was kept: a
      logistic function of \((|m| - e) / 0.05 e\) for the candidate's own edge e, its smallest magnitude that goes out.
      Where noise was ranked, w is \(P(|m + n| > e)\), and the law of what was kept is taken for that of all: an
      approximation.

    Args:
        belief: what is known of the tensors, given a candidate.
        observed: what came, by name; tensors of the belief that did not come are left out.
        floor: the standard deviation of rounding, by name, above 0.

    Example:
        >>> belief = Belief({"weight": torch.tensor([1.0, 2.0])}, {"weight": Noise(variance=0.25)})
        >>> negative_log_likelihood(belief, {"weight": torch.tensor([1.5, 2.0])}, {"weight": 1e-6})
        tensor(0.5000)
    """
    terms = [_term(belief, name, observed, floor[name]).sum() for name in observed]
    return torch.stack(terms).sum()


def bound_of(belief: Belief, name: str, observed: Tensors) -> Tensor:
    """Return the bound on the ranked magnitude of entries that did not come; a huge number if there is none.

    Of the tensors that were ranked together, those tell it to which nothing was done since.

    Example:
        >>> belief = Belief({"weight": torch.zeros(3)}, masks={"weight": Mask(("weight",), count=2)})
        >>> bound_of(belief, "weight", {"weight": torch.tensor([3.0, 0.0, -2.0])})
        tensor(2.)
    """
    mask = belief.masks[name]
    plain = [other for other in mask.group if other in observed and _is_last(mask, belief, other)]
    magnitudes = torch.cat([observed[other].abs().flatten() for other in plain])
    came = magnitudes > 0
    smallest = torch.where(came, magnitudes, UNBOUNDED).min()
    # An edge among zeros: all that is not zero came, and no more.
    whole = len(plain) == len(mask.group)
    bound = torch.where(came.sum() < mask.count, 0.0, smallest) if whole else smallest
    spread = torch.as_tensor(_sent_after(mask).as_gaussian().variance, dtype=bound.dtype, device=bound.device)
    return bound + SURE * spread.max().sqrt()


def _is_last(mask: Mask, belief: Belief, name: str) -> bool:
    """Return whether a tensor went out as a mask left it."""
    return name in belief.masks and belief.masks[name].group == mask.group and belief.noise_of(name).is_none


def ranked_noise(mask: Mask) -> Noise:
    """Return the noise in what a mask ranked, of an entry that earlier masks kept."""
    return mask.ranked if mask.before is None else ranked_noise(mask.before) + mask.before.sent + mask.ranked


def _sent_after(mask: Mask) -> Noise:
    """Return the noise that came onto sent entries after they were last ranked."""
    nested = mask.before is not None and mask.ranked.is_none
    return mask.sent + _sent_after(mask.before) if nested and mask.before is not None else mask.sent


@dataclasses.dataclass(frozen=True)
class _Part:
    """One way in which an entry may have come about: the logarithm of its weight, its mean, and its noise."""

    weight: Tensor | float
    mean: Tensor | float
    noise: Noise

    def add(self, noise: Noise, weight: Tensor | float = 0.0) -> _Part:
        return _Part(self.weight + weight, self.mean, self.noise + noise)


def _term(belief: Belief, name: str, observed: Tensors, floor: Scale) -> Tensor:
    mean, seen, noise, mask = belief.means[name], observed[name], belief.noise_of(name), belief.masks.get(name)
    if mask is None:
        return _cost(seen - mean, noise, floor)
    if noise.is_none:
        return _visible_cost(mean, seen, mask, bound_of(belief, name, observed), floor)
    passed, dropped = _split_parts(mean, mask)
    parts = [part.add(noise) for part in passed] + [_Part(weight, 0.0, noise) for weight in dropped]
    return _mixture(parts, seen, floor) + _peak(noise, seen, floor)


def _cost(residual: Tensor, noise: Noise, floor: Scale) -> Tensor:
    if noise.along is not None:
        return _along(residual, noise.as_gaussian(), noise.along, floor)
    return _peak(noise, residual, floor) - log_density(residual, noise, floor)


def _peak(noise: Noise, like: Tensor, floor: Scale) -> Tensor | float:
    """Return the log of the highest density, if no candidate changes it: taken off, numbers stay small and precise."""
    if isinstance(noise.variance, Tensor) or isinstance(noise.laplace, Tensor):
        return 0.0
    return log_density(torch.zeros_like(like), noise, floor)


def _along(residual: Tensor, noise: Noise, along: Tensor, floor: Scale) -> Tensor:
    """Return the cost of each row under independent noise and noise along a direction of its own."""
    variance = (torch.zeros_like(residual) + noise.variance + floor**2).flatten(1)
    rows, direction = residual.flatten(1), along.expand_as(residual).flatten(1)
    power = (direction.square() / variance).sum(1)
    # Split along the direction and across it: the difference of two large squares would lose its digits.
    part = (direction * rows / variance).sum(1) / power.clamp(min=1e-30)
    across = rows - part[:, None] * direction
    square = (across.square() / variance).sum(1) + part.square() * power / (1 + power)
    return 0.5 * (square + variance.log().sum(1) + torch.log1p(power))


def _visible_cost(mean: Tensor, seen: Tensor, mask: Mask, bound: Tensor, floor: Scale) -> Tensor:
    """Return the cost under a mask that shows: each entry was sent, or is bounded."""
    parts = _ranked_parts(mean, mask)
    sent_noise = _sent_after(mask)
    if len(parts) > 1:
        sent = _mixture([part.add(sent_noise) for part in parts], seen, floor)
        inside = [_within(part, seen, bound, floor) + part.weight for part in parts]
        return torch.where(seen != 0, sent, -torch.stack(inside).logsumexp(0))
    noise = parts[0].noise
    sent = _cost(seen - mean, noise + sent_noise, floor)
    if noise.is_none:
        left = 0.5 * ((mean.abs() - bound).clamp(min=0) / floor).square()
    else:
        left = -_within(parts[0], seen, bound, floor)
    return torch.where(seen != 0, sent, left)


def _within(part: _Part, like: Tensor, bound: Tensor, floor: Scale) -> Tensor:
    return log_within(torch.zeros_like(like) + part.mean, bound, part.noise, floor)


def _ranked_parts(mean: Tensor, mask: Mask) -> list[_Part]:
    """Return the ways in which what a mask ranks may have come about; entries that are surely zero are none of them."""
    if mask.before is None:
        return [_Part(0.0, mean, mask.ranked)]
    if mask.ranked.is_none:
        return [_Part(0.0, mean, ranked_noise(mask.before))]
    passed, dropped = _split_parts(mean, mask.before)
    return [part.add(mask.ranked) for part in passed] + [_Part(weight, 0.0, mask.ranked) for weight in dropped]


def _split_parts(mean: Tensor, mask: Mask) -> tuple[list[_Part], list[Tensor | float]]:
    """Return the ways in which an entry comes through a mask, and the weights of those in which it does not."""
    dropped: list[Tensor | float] = []
    if mask.before is not None and mask.ranked.is_none:
        parts, dropped = _split_parts(mean, mask.before)
    else:
        parts = _ranked_parts(mean, mask)
    passed = []
    for part in parts:
        kept, left = _log_chances(torch.zeros_like(mean) + part.mean, part.noise, mask.edge)
        passed.append(part.add(mask.sent, kept))
        dropped.append(part.weight + left)
    return passed, dropped


def _log_chances(mean: Tensor, noise: Noise, edge: Scale) -> tuple[Tensor, Tensor]:
    """Return the logarithms of the probabilities that an entry goes out, and that it does not."""
    level = torch.as_tensor(edge, dtype=mean.dtype, device=mean.device)
    if noise.is_none:
        distance = (mean.abs() - level) / (SOFTNESS * level).clamp(min=1e-20)
        return F.logsigmoid(distance), F.logsigmoid(-distance)
    left = log_within(mean, level, noise).clamp(max=-1e-6)
    return torch.log(-torch.expm1(left)), left


def _mixture(parts: list[_Part], seen: Tensor, floor: Scale) -> Tensor:
    densities = [log_density(seen - part.mean, part.noise, floor) + part.weight for part in parts]
    return -torch.stack(densities).logsumexp(0)
