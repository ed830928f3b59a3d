"""L-BFGS over many rows at once, each with a history and a stopping rule of its own.

The direction is computed from the compact form of the inverse Hessian (Byrd, Nocedal and Schnabel 1994, Theorem 2.2).
With S the last steps, Y the last changes of the gradient, R the upper triangle of S'Y, D its diagonal and gamma = s'y /
y'y of the newest pair,

    H g = gamma g + S p + gamma Y q,   q = -R^-1 S'g,   p = R^-T (D + gamma Y'Y) R^-1 S'g - gamma R^-T Y'g

which needs the long vectors in two batched products per step; the two-loop recursion would need four hundred small
ones. Reading them costs as much as a small network: a step and its change lie side by side, so that one product serves
both, and products with the newest change are differences of products with gradients.

R^-1 itself is kept, and its transpose beside it: a row times a matrix takes a quarter of the time of a matrix times a
column. The inverse of an upper triangle has the inverse of every trailing triangle in it, so the oldest pair is dropped
by clearing its row and column, and a new pair (s, y) adds the column -R^-1 S'y / s'y and the entry 1 / s'y. Nothing
depends on where in a ring of slots a pair lies, so each row may be at another place.
"""

from __future__ import annotations

from typing import Literal

import torch
from pydantic import Field
from torch import Tensor

from leaktight.attacks.history_products import add_up, multiply
from leaktight.attacks.optimiser import OptimiserState, SearchOptimiser


class SearchLBFGS(SearchOptimiser):
    """L-BFGS without line search, as torch's optimiser runs it by default.

    A row rests when no entry of its gradient exceeds 1e-7, or when the direction no longer descends.

    Args:
        learning_rate: the length of a step along the direction, above 0.
        inner: evaluations per counted iteration, at least 1.
        history: how many pairs are remembered, at least 1.
    """

    kind: Literal["lbfgs"] = "lbfgs"
    learning_rate: float = Field(1.0, gt=0)
    inner: int = Field(20, ge=1)
    history: int = Field(100, ge=1)

    @property
    def evaluations(self) -> int:
        """As many as inner steps."""
        return self.inner

    @property
    def vectors_per_row(self) -> int:
        """Two vectors for each remembered pair, and the last step's."""
        return 2 * self.history + 2

    def start(self, points: Tensor) -> OptimiserState:
        """Start with an empty history."""
        return LbfgsState(points, self.learning_rate, self.history)


class LbfgsState(OptimiserState):
    """Points, their last gradients, and a ring of pairs for each row."""

    gradient_tolerance = 1e-7
    descent_tolerance = 1e-9
    curvature_tolerance = 1e-10

    def __init__(self, points: Tensor, learning_rate: float, history: int) -> None:
        rows, width = points.shape
        self.learning_rate = learning_rate
        self.size = history
        self.steps = 0
        self.pairs = points.new_zeros(rows, history, 2, width)
        # The small matrices are kept in double where the device has it.
        self.exact = torch.float32 if points.device.type == "mps" else torch.float64
        self.inverse = torch.zeros(rows, history, history, dtype=self.exact, device=points.device)
        self.transposed = torch.zeros_like(self.inverse)
        self.squares = torch.zeros_like(self.inverse)
        self.diagonal = torch.zeros(rows, history, dtype=self.exact, device=points.device)
        self.pushed = torch.zeros(rows, dtype=torch.long, device=points.device)
        self.gamma = points.new_ones(rows)
        self.last_gradients = torch.zeros_like(points)
        self.last_moves = torch.zeros_like(points)
        # With all pairs, of the gradients and of those before.
        self.products = torch.zeros(rows, history, 2, dtype=self.exact, device=points.device)
        self.last_products = self.products

    def step(self, points: Tensor, values: Tensor, gradients: Tensor, rate: float) -> tuple[Tensor, Tensor]:
        """Move each row along its quasi-Newton direction."""
        moves, resting = self._next(gradients, rate)
        self.last_gradients, self.last_moves, self.last_products = gradients, moves, self.products
        return points + moves, resting

    def _next(self, gradients: Tensor, rate: float) -> tuple[Tensor, Tensor]:
        """Return the next moves, and which rows have come to rest."""
        if self.steps == 0:
            length = (1 / gradients.abs().sum(1)).clamp_max(1.0) * self.learning_rate * rate
            moves = gradients * -length[:, None]
        else:
            length = torch.full_like(self.gamma, self.learning_rate * rate)
            moves = self._newton(gradients, gradients - self.last_gradients, -self.learning_rate * rate)
        self.steps += 1
        slopes = torch.linalg.vecdot(gradients, moves)
        flat = gradients.abs().amax(1) <= self.gradient_tolerance
        resting = flat | (slopes > -self.descent_tolerance * length)
        return torch.where(resting[:, None], 0.0, moves), resting

    kept: tuple[str, ...] = (
        "pairs",
        "inverse",
        "transposed",
        "squares",
        "diagonal",
        "pushed",
        "gamma",
        "last_gradients",
        "last_moves",
        "last_products",
    )

    def keep(self, rows: Tensor) -> None:
        """Forget all rows but these."""
        for name in self.kept:
            setattr(self, name, getattr(self, name)[rows])

    def _newton(self, gradients: Tensor, change: Tensor, scale: float) -> Tensor:
        """Remember the newest pair where it curves upwards, and return H g times a number."""
        curvature = torch.linalg.vecdot(change, self.last_moves)
        size = torch.linalg.vecdot(change, change)
        rows = self._curves_up(curvature, change).nonzero()[:, 0]
        slots = self.pushed[rows] % self.size
        self.pairs[rows, slots] = torch.stack([self.last_moves, change], 1)[rows]
        self.gamma[rows] = (curvature / size)[rows]
        self.pushed[rows] += 1
        used = int(self.pushed.max().clamp_max(self.size))
        self.products = torch.zeros_like(self.last_products)
        if used == 0:
            return (scale * self.gamma)[:, None] * gradients
        history = self.pairs.flatten(1, 2)
        self.products[:, :used] = multiply(history, 2 * used, gradients).view(-1, used, 2)
        with_change = (self.products - self.last_products)[:, :used]
        with_change[rows, slots] = torch.stack([curvature, size], 1)[rows].to(self.exact)
        self._push(rows, slots, with_change)
        with_moves, with_changes = self.products[:, :used].unbind(2)
        weights = torch.stack(self._weights(with_moves, with_changes, used), 2).mul_(scale).to(history.dtype)
        correction = add_up(history, weights.flatten(1))
        return torch.addcmul(correction, self.gamma[:, None], gradients, value=scale)

    def _curves_up(self, curvature: Tensor, change: Tensor) -> Tensor:
        """Return in which rows the newest pair curves upwards."""
        return curvature > self.curvature_tolerance

    def _push(self, rows: Tensor, slots: Tensor, with_change: Tensor) -> None:
        """Enter the newest pairs into the small matrices, in place of whatever their slots held.

        Args:
            rows: which rows have a new pair.
            slots: where each of them has it.
            with_change: products of the newest change of every row with all steps and changes, (rows, pairs, 2).
        """
        used = with_change.shape[1]
        size = with_change[rows, slots, 0][:, None]
        for each in (self.inverse, self.transposed):
            each[rows, slots] = 0.0
            each[rows, :, slots] = 0.0
        # Of all rows: to pick some would copy their matrices.
        column = _times(with_change[..., 0], self.transposed[:, :used, :used])[rows] / -size
        column.scatter_(1, slots[:, None], 1 / size)
        self.inverse[rows, :used, slots] = column
        self.transposed[rows, slots, :used] = column
        self.squares[rows, :used, slots] = with_change[rows, :, 1]
        self.squares[rows, slots, :used] = with_change[rows, :, 1]
        self.diagonal[rows, slots] = size[:, 0]

    def _weights(self, with_moves: Tensor, with_changes: Tensor, used: int) -> tuple[Tensor, Tensor]:
        """Return p and gamma q of the compact form, (rows, pairs) each."""
        gamma = self.gamma.to(self.exact)[:, None]
        inner = _times(with_moves, self.transposed[:, :used, :used])
        outer = gamma * (_times(inner, self.squares[:, :used, :used]) - with_changes)
        outer += self.diagonal[:, :used] * inner
        return _times(outer, self.inverse[:, :used, :used]), -gamma * inner


def _times(vectors: Tensor, matrices: Tensor) -> Tensor:
    """Return each vector, as a row, times its matrix."""
    return torch.bmm(vectors[:, None], matrices)[:, 0]
