"""Embedding: features to many dimensions and to length 1, by a layer that is learned, or by a public one that nobody trains."""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from leaktight.core.errors import InvalidValue
from leaktight.core.random import Stream, sealed, stream

BIAS = 0.1
"""How large the fixed layer's bias is beside its weight, by their norms."""

TINY = 1e-24
"""What the square of a length is at least, so that it can be divided by."""

PART = 2048
"""How many dimensions are made at a time: few enough to stay near the processor, where wide embeddings would spend their time."""


class Rectified(nn.Module):
    """Layer norm without parameters, ReLU, length 1: of layer norm only the centring counts, since by length 1 a factor above 0 cancels."""

    def forward(self, made: Tensor) -> Tensor:
        """Return embeddings (examples, dimensions) of length 1."""
        positive = (made - made.mean(1, keepdim=True)).relu()
        return positive * _inverse((positive * positive).sum(1, keepdim=True))

    def scores(self, made: Tensor, keys: Tensor) -> Tensor:
        """Return the inner product of every embedding with every key, (examples, keys)."""
        found: Tensor = self(made) @ keys.t()
        return found


class FixedLayer(nn.Module):
    r"""A public random layer to many dimensions: linear, layer norm, ReLU, length 1. Nothing of it is trained or sent.

    Its weight is a Kronecker product of two slices of random orthogonal matrices. Like such a slice it has orthonormal columns, exactly so
    where dimensions exceed features and fill the last row, nearly so otherwise: features fill a rectangle \(X\), and the dimensions are the entries of \(P X Q^T\), cut after the last one. At 256 features and 16,384 dimensions
    that costs 13 products for each dimension instead of 256. The bias is the column of one more feature, which is constant.

    The mean over dimensions, which layer norm takes off, is \(\langle m, x \rangle\), with \(m\) the mean of the weight's rows: one more
    column of both factors subtracts it.

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
        self.features, self.dimensions, self.constant = features, dimensions, BIAS * math.sqrt(features)
        # Few features have no rectangle with room for chance on both sides: all of it is on the left then.
        columns = max(1, math.isqrt(features + 1) // 2)
        wide = max(1, round(columns * math.sqrt(dimensions / features))) if columns > 1 else 1
        left = _slice(-(-dimensions // wide), -(-(features + 1) // columns), rng)
        right = _slice(wide, columns, rng)
        whole, rest = divmod(dimensions, wide)
        mean = torch.outer(left[:whole].sum(0), right.sum(0))
        if rest:
            mean += torch.outer(left[whole], right[:rest].sum(0))
        self.left: Tensor
        self.right: Tensor
        self.mean: Tensor
        self.register_buffer("left", left, persistent=False)
        self.register_buffer("right", F.pad(right, (0, 1), value=-1.0), persistent=False)
        self.register_buffer("mean", mean / dimensions, persistent=False)

    def forward(self, features: Tensor) -> Tensor:
        """Return embeddings (examples, dimensions) of length 1."""
        parts = list(self._parts(features))
        inverse = _inverse(torch.stack([(part * part).sum(0) for part in parts]).sum(0))
        return torch.cat([part * inverse for part in parts]).t()

    def scores(self, features: Tensor, keys: Tensor) -> Tensor:
        """Return the inner product of every embedding with every key, (examples, keys), without joining or normalising embeddings.

        What a training step needs; quicker, because a length that divides many dimensions divides their few products as well.
        """
        products, squares, start = [], [], 0
        for part in self._parts(features):
            products.append(keys[:, start : start + len(part)] @ part)
            squares.append((part * part).sum(0))
            start += len(part)
        return (torch.stack(products).sum(0) * _inverse(torch.stack(squares).sum(0))).t()

    def _parts(self, features: Tensor) -> Iterator[Tensor]:
        """Go through the positive parts of some dimensions at a time, (dimensions, examples).

        Examples come last, where no step has to move them.
        """
        (rows, columns), examples = self.mean.shape, len(features)
        if features.shape[1] != self.features:
            raise InvalidValue(f"The fixed layer takes {self.features} features. Got {features.shape[1]} instead.")
        filled = F.pad(features.t(), (0, 0, 0, 1), value=self.constant)
        rectangle = F.pad(filled, (0, 0, 0, rows * columns - len(filled)))
        mean = self.mean.flatten() @ rectangle
        mixed = (self.left @ rectangle.reshape(rows, columns * examples)).view(len(self.left), columns, examples)
        mixed = torch.cat([mixed, mean.expand(len(mixed), 1, examples)], 1)
        start = 0
        for some in torch.split(mixed, max(1, PART // len(self.right))):
            part, left = (self.right @ some).flatten(0, 1), self.dimensions - start
            start += len(part)
            # A slice of everything would cost the backward pass a copy.
            yield (part if len(part) <= left else part[:left]).relu()


class TrainedHead(nn.Module):
    """The trained part of a head that embeds: features, flat; a linear layer with leaky ReLU if there is one; the last layer if it is learned.

    Args:
        before: the layer before the last.
        last: the last layer; an identity where it is fixed.
    """

    def __init__(self, before: nn.Module, last: nn.Module) -> None:
        super().__init__()
        self.before = before
        self.last = last

    def forward(self, features: Tensor) -> Tensor:
        """Return what parameters make of features, which `EmbeddingHead.scores` takes."""
        made: Tensor = self.last(self.before(features.flatten(1)))
        return made


class EmbeddingHead(TrainedHead):
    """A trained part, and a public part without parameters that brings what it made to many dimensions and length 1.

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
        with sealed(seed):
            super().__init__(
                nn.Sequential(nn.Linear(features, width), nn.LeakyReLU(0.2)) if width else nn.Identity(),
                nn.Identity() if fixed else nn.Linear(width or features, dimensions),
            )
        self.public = FixedLayer(width or features, dimensions, seed) if fixed else Rectified()

    @property
    def trained(self) -> TrainedHead:
        """The trained part alone, with the same layers under the same names."""
        return TrainedHead(self.before, self.last)

    def forward(self, features: Tensor) -> Tensor:
        """Return embeddings of length 1."""
        embeddings: Tensor = self.public(super().forward(features))
        return embeddings

    def scores(self, made: Tensor, keys: Tensor) -> Tensor:
        """Return the inner product of every embedding with every key, (examples, keys), from what the trained part made."""
        return self.public.scores(made, keys)


def _inverse(squares: Tensor) -> Tensor:
    """Return one by the length, from its square."""
    return squares.clamp_min(TINY).rsqrt()


def _slice(rows: int, columns: int, rng: Stream) -> Tensor:
    """Draw a slice of an orthogonal matrix, all equally likely: orthonormal columns, or rows where these are fewer."""
    q, r = torch.linalg.qr(torch.randn(max(rows, columns), min(rows, columns), generator=rng, dtype=torch.float64))
    found: Tensor = q * r.diagonal().sign()
    return (found if rows >= columns else found.t()).float().contiguous()
