"""A typical message: what a belief looks like under one draw of its noise, the same draw each time.

How many entries come through a mask, or how long a message is, depends on noise that was there before. Over many
entries one draw tells it as well as any other, and a fixed one keeps an objective smooth and repeatable.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from leaktight.core.channel import Belief, Mask, Noise

_STEPS = tuple(math.sqrt(prime) % 1 for prime in (5, 2, 3, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53))
"""The fractional parts of each one's multiples fill (0, 1) evenly, and independently of another's."""


def typical(belief: Belief, name: str) -> Tensor:
    """Return one tensor under the fixed draw: differentiable in its mean.

    Example:
        >>> belief = Belief({"weight": torch.zeros(1000)}, {"weight": Noise(variance=4.0)})
        >>> round(typical(belief, "weight").std().item(), 1)
        2.0
    """
    mean, mask = belief.means[name], belief.masks.get(name)
    left = mean if mask is None else apply_mask(mean, mask)
    return left + _draw(belief.noise_of(name), mean, 0)


def apply_mask(mean: Tensor, mask: Mask, depth: int = 1) -> Tensor:
    """Return what a mask leaves of a tensor under the fixed draw, zero where an entry does not go out."""
    earlier = mean if mask.before is None else apply_mask(mean, mask.before, depth + 2)
    ranked = earlier + _draw(mask.ranked, mean, depth)
    return torch.where(ranked.abs() >= mask.edge, ranked + _draw(mask.sent, mean, depth + 1), 0.0)


def _draw(noise: Noise, like: Tensor, depth: int) -> Tensor | float:
    if noise.is_none:
        return 0.0
    places = torch.arange(like.numel(), dtype=torch.float64, device=like.device).view(like.shape) + 0.5
    # Each kind of noise, and each depth, has a sequence of its own: laws add up as those of independent numbers do.
    gaussian, laplace = ((places * _STEPS[(2 * depth + kind) % len(_STEPS)]) % 1.0 for kind in (0, 1))
    normal = torch.special.ndtri(gaussian.clamp(1e-9, 1 - 1e-9)).to(like.dtype)
    centred = laplace - 0.5
    heavy = (-centred.sign() * torch.log1p(-2 * centred.abs().clamp(max=0.5 - 1e-9))).to(like.dtype)
    variance = torch.as_tensor(noise.variance, dtype=like.dtype, device=like.device)
    # The part along a direction counts entry by entry: its length is the same.
    along = 0.0 if noise.along is None else noise.along.square()
    draw: Tensor = (variance + along).clamp(min=1e-30).sqrt() * normal + noise.laplace * heavy
    return draw
