"""Laws of noise: the density of a residual, and the probability that an entry stays within a bound.

Everything is in logarithms, and finite with finite slopes far out in the tails: a search starts there. Nothing branches
on the value of a tensor.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from leaktight.core.channel import Noise, Scale, is_zero

_FAR = 1e9
"""Where arguments of the normal law are cut, so that their squares fit into single precision."""
_NARROW = 0.1
"""Half width in standard deviations below which an interval's probability is taken from a series about its middle."""
_WIDE = 30.0
"""So many times the Laplace scale, a Gaussian part hides it: the sum is Gaussian to better than a millionth."""
_LOG_ROOT = 0.5 * math.log(2 * math.pi)


def log_density(residual: Tensor, noise: Noise, floor: Scale = 0.0) -> Tensor:
    """Return the logarithm of the density of each residual, noise along a direction left out.

    Args:
        residual: what was observed minus its mean.
        noise: its law: Gaussian, Laplace, or the sum of both.
        floor: the standard deviation of what single precision adds, as a Gaussian part.

    Example:
        >>> log_density(torch.tensor([0.0, 2.0]), Noise(variance=1.0))
        tensor([-0.9189, -2.9189])
        >>> log_density(torch.tensor([2.0, 4.0]), Noise(laplace=0.5), floor=1e-6)
        tensor([-4., -8.])
    """
    std = _over(noise.variance + floor**2, residual).sqrt()
    if is_zero(noise.laplace):
        return -0.5 * (residual / std).square() - std.log() - _LOG_ROOT
    scale = _over(noise.laplace, residual)
    ratio = std / scale
    total = (std.square() + 2 * scale.square()).sqrt()
    wide = -0.5 * (residual / total).square() - total.log() - _LOG_ROOT
    # Both branches must be finite everywhere, or the one that is not taken spoils the slope.
    ratio_cut = ratio.clamp(max=_WIDE)
    units, steps = residual / scale, residual / (ratio_cut * scale)
    right = -units + log_ndtr(steps - ratio_cut)
    left = units + log_ndtr(-steps - ratio_cut)
    sum_of_both = torch.logaddexp(right, left) + 0.5 * ratio_cut.square() - (2 * scale).log()
    return torch.where(ratio > _WIDE, wide, sum_of_both)


def log_within(mean: Tensor, bound: Tensor, noise: Noise, floor: Scale = 0.0) -> Tensor:
    r"""Return \(\log P(|m + n| \le t)\) for each entry.

    Of Gaussian and Laplace noise together it is that of Gaussian noise of the same variance: an approximation.

    Args:
        mean: m.
        bound: t, at least 0.
        noise: the law of n.
        floor: the standard deviation of what single precision adds; the bound is wider by as much.

    Example:
        >>> log_within(torch.tensor([0.0, 0.0]), torch.tensor(1.0), Noise(variance=1.0)).exp()
        tensor([0.6827, 0.6827])
    """
    size, bound = mean.abs(), bound + floor
    if is_zero(noise.variance) and not is_zero(noise.laplace):
        scale = _over(noise.laplace, mean)
        return _within_laplace(size / scale, bound / scale)
    std = _over(noise.as_gaussian().variance + floor**2, mean).sqrt()
    return _within_normal((size / std).clamp(max=_FAR), (bound / std).clamp(max=_FAR))


def distribution(residual: Tensor, noise: Noise) -> Tensor:
    """Return the probability of a smaller residual, in double precision; for checks, not for searches.

    Example:
        >>> distribution(torch.tensor([0.0, 1.0]), Noise(variance=1.0))
        tensor([0.5000, 0.8413], dtype=torch.float64)
    """
    wide = residual.double()
    std, scale = _over(noise.variance, wide).sqrt(), _over(noise.laplace, wide)
    if is_zero(noise.laplace):
        return _ndtr(wide / std)
    tail = 0.5 * torch.exp(-wide.abs() / scale)
    if is_zero(noise.variance):
        return torch.where(wide < 0, tail, 1 - tail)
    ratio, steps, units = std / scale, wide / std, wide / scale
    upper = torch.exp(0.5 * ratio.square() - units + log_ndtr(steps - ratio))
    lower = torch.exp(0.5 * ratio.square() + units + log_ndtr(-steps - ratio))
    return _ndtr(steps) - 0.5 * (upper - lower)


def _ndtr(numbers: Tensor) -> Tensor:
    probability: Tensor = torch.special.ndtr(numbers)
    return probability


def log_ndtr(numbers: Tensor) -> Tensor:
    """Return the log of the standard normal distribution; under `torch.func.vmap` torch's own runs row by row.

    Example:
        >>> log_ndtr(torch.tensor([0.0, -10.0]))
        tensor([ -0.6931, -53.2313])
    """
    root = math.sqrt(0.5)
    low, high = numbers.clamp(-_FAR, -1.0), numbers.clamp(-1.0, _FAR)
    tail = torch.log(0.5 * torch.special.erfcx(-low * root)) - 0.5 * low.square()
    return torch.where(numbers < -1, tail, torch.log1p(-0.5 * torch.erfc(high * root)))


def _within_normal(size: Tensor, bound: Tensor) -> Tensor:
    """Return the log probability that a standard normal number around `size` >= 0 lies in [-bound, bound]."""
    broad, narrow = bound.clamp(min=_NARROW), bound.clamp(max=_NARROW)
    upper, lower = log_ndtr(broad - size), log_ndtr(-broad - size)
    difference = (lower - upper).clamp(max=-1e-6)
    outer = upper + torch.log(-torch.expm1(difference))
    # Around the middle the density is that of the middle times exp(size * x - x^2 / 2).
    lean = (narrow * size).clamp(min=1e-3)
    bend = lean + torch.log(-torch.expm1(-2 * lean) / (2 * lean))
    width = torch.log(2 * narrow.clamp(min=1e-30))
    inner = width - 0.5 * size.square() - _LOG_ROOT + bend - narrow.square() / 6
    return torch.where(bound >= _NARROW, outer, inner)


def _within_laplace(size: Tensor, bound: Tensor) -> Tensor:
    """Return the log probability that a standard Laplace number around `size` >= 0 lies in [-bound, bound]."""
    inside = torch.minimum(size, bound)
    whole = -0.5 * (torch.expm1(inside - bound) + torch.expm1(-inside - bound))
    beyond = (size - bound).clamp(min=0)
    return whole.clamp(min=1e-30).log() - beyond


def _over(scale: Scale, like: Tensor) -> Tensor:
    """Return a number as a tensor of another's type."""
    return (
        scale.to(like.dtype)
        if isinstance(scale, Tensor)
        else torch.as_tensor(scale, dtype=like.dtype, device=like.device)
    )
