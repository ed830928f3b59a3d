"""Noise that a defence adds to every tensor, or to each its own."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from leaktight.core.channel import Belief, Noise, Stage


@dataclasses.dataclass(frozen=True)
class AddNoise(Stage):
    """Independent noise of one law on every entry of every tensor.

    Args:
        std: the standard deviation of its Gaussian part.
        laplace: the scale of its Laplace part.
        per_example: whether both are of a sum over examples, so that a mean has them divided by their number, as in
            DP-SGD.

    Example:
        >>> import torch
        >>> belief = Belief({"weight": torch.zeros(2)}, examples=4)
        >>> AddNoise(std=2.0, per_example=True).push(belief).noise_of("weight").variance
        0.25
    """

    std: float = 0.0
    laplace: float = 0.0
    per_example: bool = False

    def push(self, belief: Belief) -> Belief:
        """Add the law to that of every tensor."""
        noise = Noise(self.std**2, self.laplace).scale(1 / belief.examples if self.per_example else 1.0)
        return belief.map_noise(lambda known: known + noise)


@dataclasses.dataclass(frozen=True)
class StatedNoise(Stage):
    """Noise of a law of its own on each of some tensors: of cut gradients, where it depends on the rows.

    Args:
        noise: the law by the tensor's name; a tensor that is not named gets none.

    Example:
        >>> import torch
        >>> stage = StatedNoise({"cut": Noise(variance=torch.tensor([[1.0], [4.0]]))})
        >>> stage.push(Belief({"cut": torch.zeros(2, 3)})).noise_of("cut").variance.shape
        torch.Size([2, 1])
    """

    noise: Mapping[str, Noise]

    def push(self, belief: Belief) -> Belief:
        """Add each law to its tensor's."""
        noise = {name: belief.noise_of(name) + self.noise.get(name, Noise()) for name in belief.means}
        return dataclasses.replace(belief, noise=noise)
