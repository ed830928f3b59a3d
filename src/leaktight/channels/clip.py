"""Clipping: what is longer than a bound is shortened to it."""

from __future__ import annotations

import dataclasses

import torch
from torch import Tensor

from leaktight.channels.typical import apply_mask
from leaktight.core.channel import Belief, Stage


@dataclasses.dataclass(frozen=True)
class Clip(Stage):
    r"""All tensors together times \(\min(1, C / \lVert \cdot \rVert)\): of each example's gradient, or of a message.

    Noise that is there already counts: the squared norm is then that of the means plus the sum of the variances. This
    is an approximation, since the norm of a real message varies a little around that, the less the more entries there
    are. What a mask left out does not count.

    Args:
        bound: C, above 0.

    Example:
        >>> Clip(bound=1.0).push(Belief({"weight": torch.tensor([3.0, 4.0])})).means["weight"]
        tensor([0.6000, 0.8000])
    """

    bound: float

    def push(self, belief: Belief) -> Belief:
        """Scale means, noise and masks by one factor, differentiable in the means."""
        if not belief.means:
            return belief
        squares = torch.stack([self._square(belief, name) for name in belief.means]).sum()
        # Below the bound the factor is 1 and has no slope, at a norm of 0 too.
        factor = squares.clamp(min=1.0).rsqrt()
        return dataclasses.replace(
            belief,
            means={name: mean * factor for name, mean in belief.means.items()},
            noise={name: noise.scale(factor) for name, noise in belief.noise.items()},
            masks={name: mask.scale(factor) for name, mask in belief.masks.items()},
        )

    def _square(self, belief: Belief, name: str) -> Tensor:
        """Return the expected squared length of one tensor, in units of the squared bound."""
        mean, mask, noise = belief.means[name], belief.masks.get(name), belief.noise_of(name)
        length = (mean if mask is None else apply_mask(mean, mask)) / self.bound
        total = length.square().sum()
        if not noise.is_none:
            plain = noise.as_gaussian().scale(1 / self.bound)
            variance = torch.as_tensor(plain.variance, dtype=mean.dtype, device=mean.device)
            total = total + variance.expand(mean.shape).sum()
            total = total if plain.along is None else total + plain.along.square().sum()
        return total
