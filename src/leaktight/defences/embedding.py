"""Embedding: features mapped to many dimensions and length 1.

A learned layer maps them, or a public one that nobody trains.
"""

from __future__ import annotations

import math
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from leaktight.core.draws import Draws, public_draws
from leaktight.core.errors import InvalidValue

BIAS = 0.1
"""How large the fixed layer's bias is beside its weight, by their norms."""

TINY = 1e-24
"""What the square of a length is at least, so that it can be divided by."""

FEW = 64
"""Below how many features the fixed layer is dense."""

PART = 2048
"""How many dimensions are made at a time: few enough to stay near the processor.

Wide embeddings made all at once would spend their time on memory.
"""


class Rectified(nn.Module):
    """Layer norm without parameters, ReLU, length 1.

    Of layer norm only the centring counts, since length 1 cancels any factor above 0.
    """

    def forward(self, outputs: Tensor) -> Tensor:
        """Return embeddings (examples, dimensions) of length 1."""
        positive = (outputs - outputs.mean(1, keepdim=True)).relu()
        return positive * _inverse((positive * positive).sum(1, keepdim=True))

    def alignments(self, outputs: Tensor, keys: Tensor, weights: Tensor) -> Tensor:
        """Return the inner product of every embedding with its own key, which is `weights @ keys`."""
        return inner_products(self(outputs), keys, weights)


class FixedLayer(nn.Module):
    r"""A public random layer to many dimensions: linear, layer norm, ReLU, length 1. Nothing of it is trained or sent.

    Its weight is a Kronecker product of two slices of random orthogonal matrices: features fill a rectangle \(X\), and
    the dimensions are the entries of \(P X Q^T\). Like such a slice it has orthonormal columns, where \(P\) has more
    rows than columns. At 256 features and 16,384 dimensions that costs 8 products for each dimension instead of 256; in
    exchange, the 64 dimensions of one row of \(P\) have four directions between them, so that some are much alike. The
    bias is the column of one more feature, which is constant. Columns of \(P\) sum to 0, so that the mean over
    dimensions, which layer norm takes off, is 0 already.

    Args:
        features: how many come in.
        dimensions: how many go out; with few divisors, as a prime has, the layer is slower.
        seed: what the layer is drawn from.

    Example:
        >>> layer = FixedLayer(4, 64, seed=0)
        >>> layer(torch.ones(2, 4)).shape, list(layer.parameters())
        (torch.Size([2, 64]), [])
    """

    def __init__(self, features: int, dimensions: int, seed: int) -> None:
        super().__init__()
        draws = public_draws(seed, "fixed layer", features, dimensions)
        self.features, self.constant = features, BIAS * math.sqrt(features)
        # Fewer columns would make dimensions alike. Few features have one: all of chance is on the left then, and it
        # costs little.
        columns = max(4, math.isqrt(features + 1) // 4) if features >= FEW else 1
        width = _divisor(dimensions, math.isqrt(dimensions) // 2) if columns > 1 else 1
        columns = min(columns, width)
        left = _draw_centred(dimensions // width, -(-(features + 1) // columns), draws)
        self.left: Tensor
        self.right: Tensor
        self.register_buffer("left", left, persistent=False)
        self.register_buffer("right", _slice(width, columns, draws), persistent=False)

    def forward(self, features: Tensor) -> Tensor:
        """Return embeddings (examples, dimensions) of length 1."""
        positive = (self.right @ self._mix(self._rectangle(features))).flatten(0, 1).relu()
        return (positive * _inverse((positive * positive).sum(0))).t()

    def alignments(self, features: Tensor, keys: Tensor, weights: Tensor) -> Tensor:
        """Return the inner product of every embedding with its own key, which is `weights @ keys`.

        This is what a training step needs.

        Quicker than by `forward`, for the first derivative by features too. Others take as long as by it.
        """
        products, _ = _Alignments.apply(features, keys, weights, self)  # type: ignore[no-untyped-call]
        return cast("Tensor", products)

    def tangents(self, features: Tensor, keys: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
        r"""Return `alignments` and their slopes, (examples, features).

        It takes one pass over the dimensions and keeps none of them.

        With \(z = W x\), \(p = \max(z, 0)\) and \(k\) the key where \(z > 0\), else 0, an alignment is \(n / \sqrt q\)
        with \(n = \langle k, p \rangle = \langle W^T k, x \rangle\) and
        \(q = \langle p, p \rangle = \langle W^T p, x \rangle\). So the two products by which the slope goes back,
        \(W^T k\) and \(W^T p\), give the value as well.
        """
        rectangle, weights, start = self._rectangle(features), weights.t(), 0
        nearer, longer = [], []
        for some in torch.split(self._mix(rectangle), max(1, PART // len(self.right))):
            positive = (self.right @ some).relu_()
            end = start + len(some) * len(self.right)
            key = (keys[:, start:end].t() @ weights).view_as(positive)
            start = end
            longer.append(self.right.t() @ positive)
            # By signs, since to choose or to multiply by truth values takes several times as long.
            nearer.append(self.right.t() @ (positive.sign_() * key))
        back = [(self.left.t() @ torch.cat(found).flatten(1)).view_as(rectangle) for found in (nearer, longer)]
        product, square = ((rectangle * towards).sum(0) for towards in back)
        inverse = _inverse(square)
        slopes = (back[0] - back[1] * (product * inverse * inverse)) * inverse
        return product * inverse, slopes[: self.features].t()

    def _rectangle(self, features: Tensor) -> Tensor:
        """Return features and what fills their rectangle, (entries, examples).

        Examples come last, where no step has to move them.
        """
        if features.shape[1] != self.features:
            raise InvalidValue(f"The fixed layer takes {self.features} features. Got {features.shape[1]} instead.")
        filled = F.pad(features.t(), (0, 0, 0, 1), value=self.constant)
        return F.pad(filled, (0, 0, 0, self.left.shape[1] * self.right.shape[1] - len(filled)))

    def _mix(self, rectangle: Tensor) -> Tensor:
        """Return the rectangle with its rows mixed, (rows, columns, examples)."""
        return (self.left @ rectangle.reshape(self.left.shape[1], -1)).view(len(self.left), self.right.shape[1], -1)


class _Alignments(torch.autograd.Function):
    """Alignments of a fixed layer with the slopes that were found with them.

    What a training step does not need is computed from the embeddings.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(features: Tensor, keys: Tensor, weights: Tensor, layer: FixedLayer) -> tuple[Tensor, Tensor]:
        return layer.tangents(features, keys, weights)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
        ctx.layer = inputs[3]
        ctx.mark_non_differentiable(output[1])
        ctx.save_for_backward(*inputs[:3], output[1])

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        (features, keys, weights, slopes), grad = ctx.saved_tensors, grads[0][:, None]
        towards = grad * _Slopes.apply(features, keys, weights, slopes, ctx.layer)  # type: ignore[no-untyped-call]
        _, key, weight, _ = ctx.needs_input_grad
        embeddings = ctx.layer(features) if key or weight else None
        return (
            towards,
            None if embeddings is None else (grad * weights).t() @ embeddings,
            None if embeddings is None else grad * (embeddings @ keys.t()),
            None,
        )


class _Slopes(torch.autograd.Function):
    """Slopes of alignments, as they were found; a further derivative is that of the embeddings' slopes."""

    generate_vmap_rule = True

    @staticmethod
    def forward(features: Tensor, keys: Tensor, weights: Tensor, slopes: Tensor, layer: FixedLayer) -> Tensor:
        return slopes.clone()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.layer = inputs[4]
        ctx.save_for_backward(*inputs[:3])

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        def slopes(features: Tensor, keys: Tensor, weights: Tensor) -> Tensor:
            def total(at: Tensor) -> Tensor:
                return inner_products(ctx.layer(at), keys, weights).sum()

            slope: Tensor = torch.func.grad(total)(features)
            return slope

        pulled = torch.func.vjp(slopes, *ctx.saved_tensors)[1]
        return *pulled(grads[0]), None, None


class TrainedHead(nn.Module):
    """The trained part of a head that embeds.

    It flattens features, then applies a linear layer with leaky ReLU if there is one, and the last layer if it is
    learned.

    Args:
        before: the layer before the last.
        last: the last layer; an identity where it is fixed.
    """

    def __init__(self, before: nn.Module, last: nn.Module) -> None:
        super().__init__()
        self.before = before
        self.last = last

    def forward(self, features: Tensor) -> Tensor:
        """Return what parameters make of features, which `EmbeddingHead` scores."""
        outputs: Tensor = self.last(self.before(features.flatten(1)))
        return outputs


class EmbeddingHead(TrainedHead):
    """A trained part, and a public part without parameters that maps its output to many dimensions and length 1.

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
        with public_draws(seed).initialise():
            super().__init__(
                nn.Sequential(nn.Linear(features, width), nn.LeakyReLU(0.2)) if width else nn.Identity(),
                nn.Identity() if fixed else nn.Linear(width or features, dimensions),
            )
        self.public = FixedLayer(width or features, dimensions, seed) if fixed else Rectified()

    @property
    def trained_part(self) -> TrainedHead:
        """The trained part alone, with the same layers under the same names."""
        return TrainedHead(self.before, self.last)

    def forward(self, features: Tensor) -> Tensor:
        """Return embeddings of length 1."""
        embeddings: Tensor = self.public(super().forward(features))
        return embeddings

    def scores(self, outputs: Tensor, keys: Tensor) -> Tensor:
        """Return the inner product of every embedding with every key, (examples, keys).

        Embeddings are made from the output of the trained part.
        """
        embeddings: Tensor = self.public(outputs)
        return embeddings @ keys.t()

    def alignments(self, outputs: Tensor, keys: Tensor, weights: Tensor) -> Tensor:
        """Return the inner product of every embedding with its own key, which is `weights @ keys`.

        Embeddings are made from the output of the trained part.
        """
        return self.public.alignments(outputs, keys, weights)


def inner_products(embeddings: Tensor, keys: Tensor, weights: Tensor) -> Tensor:
    """Return the inner product of every embedding with its own key."""
    return (embeddings @ keys.t() * weights).sum(1)


def _inverse(squares: Tensor) -> Tensor:
    """Return one by the length, from its square."""
    return squares.clamp_min(TINY).rsqrt()


def _divisor(number: int, most: int) -> int:
    """Return the largest divisor of a number that is at most so large; 1 if none is."""
    return next((divisor for divisor in range(most, 0, -1) if number % divisor == 0), 1)


def _slice(rows: int, columns: int, draws: Draws) -> Tensor:
    """Draw a slice of an orthogonal matrix, all equally likely: orthonormal columns, or rows where these are fewer."""
    drawn = draws.normals((rows, columns), torch.float64)
    return _orthonormal(drawn).float().contiguous()


def _draw_centred(rows: int, columns: int, draws: Draws) -> Tensor:
    """Draw a slice whose columns sum to 0, all equally likely: as one of all directions but that of equal entries."""
    drawn = draws.normals((rows, columns), torch.float64)
    if rows > columns:
        return _orthonormal(drawn - drawn.mean(0)).float().contiguous()
    # A reflection that takes the first axis to equal entries takes all others to what is orthogonal to them.
    mirror = torch.full((rows, 1), -1 / math.sqrt(rows), dtype=torch.float64)
    mirror[0] += 1
    flat = F.pad(_orthonormal(drawn[1:]), (0, 0, 1, 0))
    return (flat - 2 * mirror @ (mirror.t() @ flat) / mirror.square().sum()).float().contiguous()


def _orthonormal(drawn: Tensor) -> Tensor:
    rows, columns = drawn.shape
    q, r = torch.linalg.qr(drawn if rows >= columns else drawn.t())
    basis: Tensor = q * r.diagonal().sign()
    return basis if rows >= columns else basis.t()
