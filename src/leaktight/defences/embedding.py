"""Embedding: features to many dimensions and to length 1, by a layer that is learned, or by a public one that nobody trains."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from leaktight.core.random import Stream, sealed, stream

BIAS = 0.1
"""How large the fixed layer's bias is beside its weight, by their norms."""

TINY = 1e-24
"""What the square of a length is at least, so that it can be divided by."""

PART = 2048
"""How many dimensions are made at a time: few enough to stay near the processor, where wide embeddings would spend their time."""


class FixedLayer(nn.Module):
    r"""A public random layer to many dimensions: linear, layer norm, ReLU, length 1. Nothing of it is trained or sent.

    Its weight has (nearly) orthonormal columns, like a slice of a random orthogonal matrix, but is made of Kronecker products:
    features fill a square \(X\) of side \(s = \lceil \sqrt{features} \rceil\), and each \(s^2\) dimensions are \(A_i X B_i^T\) with random
    orthogonal \(A_i\) and \(B_i\) of their own. So d dimensions cost \(2 s d\) products for each example instead of \(s^2 d\): at 256
    features an eighth.

    Of layer norm, centring is what counts: by length 1 a factor above 0 cancels. It is folded into the weight: the mean over dimensions is
    \(\langle m, x \rangle\), with \(m\) the mean of the weight's rows, and one more row and column of the factors subtract it.

    Args:
        features: how many come in.
        dimensions: how many go out.
        seed: what the layer is drawn from.

    Example:
        >>> layer = FixedLayer(4, 64, seed=0)
        >>> layer(torch.ones(2, 4)).shape, list(layer.parameters())
        (torch.Size([2, 64]), [])
    """

    def __init__(self, features: int, dimensions: int, seed: int) -> None:
        super().__init__()
        rng = stream(seed, "fixed layer", features, dimensions)
        self.dimensions, self.side = dimensions, math.isqrt(features - 1) + 1
        side, groups = self.side, -(-dimensions // self.side)
        blocks = -(-groups // side)
        right = _orthogonal(blocks, side, rng).flatten(0, 1)[:groups]
        left = _orthogonal(blocks, side, rng).repeat_interleave(side, 0)[:groups]
        kept = (torch.arange(groups * side) < dimensions).view(groups, side, 1)
        bias = torch.randn(dimensions, generator=rng)
        bias = (bias - bias.mean()) * BIAS * math.sqrt(features * blocks) / bias.norm()
        self.right: Tensor
        self.left: Tensor
        self.bias: Tensor
        self.mean: Tensor
        # Beyond the last dimension there is only 0, which ReLU and length leave alone.
        self.register_buffer("right", F.pad(right, (0, 1), value=1.0), persistent=False)
        self.register_buffer("left", F.pad(left, (0, 1), value=-1.0) * kept, persistent=False)
        self.register_buffer("bias", F.pad(bias, (0, groups * side - dimensions)).view(groups, side, 1), persistent=False)
        self.register_buffer("mean", (right.t() @ (left * kept).sum(1)).flatten()[:features] / dimensions, persistent=False)

    def forward(self, features: Tensor) -> Tensor:
        """Return embeddings (examples, dimensions) of length 1."""
        square, groups = self._square(features), max(1, PART // self.side)
        factors = zip(*(torch.split(tensor, groups) for tensor in (self.right, self.left, self.bias)), strict=True)
        parts = [self._part(square, *some) for some in factors]
        lengths = torch.stack([(part * part).sum(0) for part in parts]).sum(0)
        inverse = lengths.clamp_min(TINY).rsqrt()
        found = torch.cat([part * inverse for part in parts])
        return (found if len(found) == self.dimensions else found[: self.dimensions]).t()

    def _square(self, features: Tensor) -> Tensor:
        """Return the square of features as (column, row, example), framed by zeros, with the mean in the last corner.

        Examples come last, where no step has to move them.
        """
        side, examples = self.side, len(features)
        square = F.pad(features.t(), (0, 0, 0, side**2 - features.shape[1])).view(side, side, examples)
        mean = F.pad((self.mean @ features.t())[None, None], (0, 0, side, 0))
        return torch.cat([F.pad(square, (0, 0, 0, 1)), mean])

    def _part(self, square: Tensor, right: Tensor, left: Tensor, bias: Tensor) -> Tensor:
        """Return the positive part of some dimensions, (dimensions, examples)."""
        mixed = (right @ square.flatten(1)).view(-1, *square.shape[1:])
        return torch.baddbmm(bias, left, mixed).flatten(0, 1).relu()


class LearnedLayer(nn.Linear):
    """A trained linear layer to many dimensions, layer norm without parameters, ReLU, length 1."""

    def forward(self, features: Tensor) -> Tensor:
        """Return embeddings (examples, dimensions) of length 1."""
        made = super().forward(features)
        positive = (made - made.mean(1, keepdim=True)).relu()
        return positive * (positive * positive).sum(1, keepdim=True).clamp_min(TINY).rsqrt()


class EmbeddingHead(nn.Module):
    """Features, flat; a trained linear layer with leaky ReLU if a width is given; the layer that embeds.

    Args:
        features: how many come in.
        width: units of the layer before the last; None for no such layer.
        dimensions: how many go out.
        fixed: whether the last layer is public and fixed.
        seed: what the fixed layer and the initial weights are drawn from.

    Example:
        >>> [name for name, _ in EmbeddingHead(8, 4, 64, fixed=True, seed=0).named_parameters()]
        ['before.0.weight', 'before.0.bias']
    """

    def __init__(self, features: int, width: int | None, dimensions: int, fixed: bool, seed: int) -> None:
        super().__init__()
        with sealed(seed):
            self.before = nn.Sequential(nn.Linear(features, width), nn.LeakyReLU(0.2)) if width else nn.Identity()
            self.last = (
                FixedLayer(width or features, dimensions, seed) if fixed else LearnedLayer(width or features, dimensions)
            )

    def forward(self, features: Tensor) -> Tensor:
        """Return embeddings of length 1."""
        embeddings: Tensor = self.last(self.before(features.flatten(1)))
        return embeddings


def _orthogonal(count: int, side: int, rng: Stream) -> Tensor:
    """Draw orthogonal matrices, all equally likely."""
    q, r = torch.linalg.qr(torch.randn(count, side, side, generator=rng, dtype=torch.float64))
    found: Tensor = q * r.diagonal(dim1=-2, dim2=-1).sign()[:, None, :]
    return found.float()
