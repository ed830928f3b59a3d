"""Calibration: whether messages agree with a belief about them, so that a check can tell if a channel lies."""

from __future__ import annotations

import torch
from torch import Tensor

from leaktight.channels.law import distribution
from leaktight.channels.likelihood import bound_of, ranked_noise
from leaktight.core.channel import Belief, Mask, Noise, is_zero
from leaktight.core.message import Tensors
from leaktight.core.random import Stream


def standardise(belief: Belief, observed: Tensors, rng: Stream) -> dict[str, Tensor]:
    """Return numbers that are independent and standard normal if the belief is right; NaN where nothing is random.

    A residual is divided by its standard deviation, or brought from its own law to the normal one. Of an entry that was
    ranked with noise and did not come, all that is known is that it lies within a bound: it is drawn from its law
    there, so that over all entries of a true belief the numbers are standard normal again. Where a law is an
    approximation, as the package lists them, its entries are NaN.

    Args:
        belief: what is known at the true examples.
        observed: what was sent.
        rng: for entries that did not come.

    Example:
        >>> from leaktight.core.random import stream
        >>> belief = Belief({"weight": torch.tensor([1.0, 2.0])}, {"weight": Noise(variance=0.25)})
        >>> standardise(belief, {"weight": torch.tensor([1.5, 2.0])}, stream(0))["weight"]
        tensor([1., 0.], dtype=torch.float64)
    """
    return {name: _standard(belief, name, observed, rng) for name in observed}


def deviations(belief: Belief, observed: Tensors) -> dict[str, Tensor]:
    """Return how far each entry is beyond its bound, or from its exact value; 0 where the belief is not sure.

    Example:
        >>> deviations(Belief({"weight": torch.tensor([1.0, 2.0])}), {"weight": torch.tensor([1.5, 2.0])})["weight"]
        tensor([0.5000, 0.0000], dtype=torch.float64)
    """
    return {name: _deviation(belief, name, observed) for name in observed}


def _standard(belief: Belief, name: str, observed: Tensors, rng: Stream) -> Tensor:
    mean, seen, noise, mask = (
        belief.means[name].double(),
        observed[name].double(),
        belief.noise_of(name),
        belief.masks.get(name),
    )
    nothing = torch.full_like(seen, torch.nan)
    if mask is None:
        return _to_normal(seen - mean, noise)
    ranked = ranked_noise(mask)
    if not noise.is_none:
        if not ranked.is_none:
            return nothing
        kept = _is_kept(mean, mask)
        return torch.where(kept, _to_normal(seen - mean, _noise_on_sent(mask) + noise), _to_normal(seen, noise))
    came = seen != 0
    if ranked.is_none:
        return torch.where(came, _to_normal(seen - mean, _noise_on_sent(mask)), torch.nan)
    if mask.before is not None or not mask.sent.is_none or ranked.approximate:
        return nothing
    bound = bound_of(belief, name, observed).double()
    low, high = distribution(-bound - mean, ranked), distribution(bound - mean, ranked)
    place = low + (high - low) * torch.rand(seen.shape, generator=rng, dtype=torch.float64)
    return torch.where(came, _to_normal(seen - mean, ranked), torch.special.ndtri(place.clamp(1e-15, 1 - 1e-15)))


def _deviation(belief: Belief, name: str, observed: Tensors) -> Tensor:
    mean, seen, noise, mask = (
        belief.means[name].double(),
        observed[name].double(),
        belief.noise_of(name),
        belief.masks.get(name),
    )
    nothing = torch.zeros_like(seen)
    if mask is None:
        return _beside(seen - mean, noise)
    ranked = ranked_noise(mask)
    if not noise.is_none or not ranked.is_none:
        return nothing
    bound = bound_of(belief, name, observed).double()
    sent = (seen - mean).abs() if _noise_on_sent(mask).is_none else nothing
    return torch.where(seen != 0, sent, (mean.abs() - bound).clamp(min=0))


def _is_kept(mean: Tensor, mask: Mask) -> Tensor:
    """Return which entries go out where no noise is ranked: the same for every message."""
    kept = mean.abs() >= mask.edge
    return kept if mask.before is None else kept & _is_kept(mean, mask.before)


def _noise_on_sent(mask: Mask) -> Noise:
    return mask.sent if mask.before is None else mask.sent + _noise_on_sent(mask.before)


def _to_normal(residual: Tensor, noise: Noise) -> Tensor:
    if noise.is_none or noise.approximate:
        return torch.full_like(residual, torch.nan)
    if noise.along is not None:
        return _whiten(residual, noise, noise.along.double())
    if is_zero(noise.laplace):
        variance = torch.zeros_like(residual) + noise.variance
        return torch.where(variance > 0, residual / variance.sqrt(), torch.nan)
    # From the nearer tail, where probabilities keep their digits.
    tail = torch.special.ndtri(distribution(-residual.abs(), noise).clamp(min=1e-300))
    return torch.where(residual > 0, -tail, tail)


def _whiten(residual: Tensor, noise: Noise, along: Tensor) -> Tensor:
    """Return rows in coordinates where their law is standard normal; one number if a row varies along a line only."""
    rows, direction = residual.flatten(1), along.expand_as(residual).flatten(1)
    variance = (torch.zeros_like(residual) + noise.variance).flatten(1)[:, :1]
    length = direction.norm(dim=1, keepdim=True)
    unit = direction / length.clamp(min=1e-300)
    part = (unit * rows).sum(1, keepdim=True)
    scaled = part / (variance + length.square()).sqrt()
    whole = (rows - part * unit) / variance.sqrt() + scaled * unit
    alone = torch.full_like(rows, torch.nan)
    alone[:, :1] = torch.where(length > 0, scaled, torch.nan)
    return torch.where(variance > 0, whole, alone).view_as(residual)


def _beside(residual: Tensor, noise: Noise) -> Tensor:
    """Return what is left of residuals where no noise can be."""
    if not is_zero(noise.laplace):
        return torch.zeros_like(residual)
    variance = torch.zeros_like(residual) + noise.variance
    left = residual
    if noise.along is not None:
        rows, direction = residual.flatten(1), noise.along.double().expand_as(residual).flatten(1)
        unit = direction / direction.norm(dim=1, keepdim=True).clamp(min=1e-300)
        left = (rows - (unit * rows).sum(1, keepdim=True) * unit).view_as(residual)
    return torch.where(variance > 0, 0.0, left.abs())
