"""L-BFGS over many rows at once, each with a history and a stopping rule of its own.

The direction is computed from the compact form of the inverse Hessian (Byrd, Nocedal and Schnabel 1994, Theorem 2.2). With S the
last steps, Y the last changes of the gradient, R the upper triangle of S'Y, D its diagonal and gamma = s'y / y'y of the newest pair,

    H g = gamma g + S p + gamma Y q,   q = -R^-1 S'g,   p = R^-T (D + gamma Y'Y) R^-1 S'g - gamma R^-T Y'g

which needs the long vectors in two batched products per step; the two-loop recursion would need four hundred small ones.
"""

from __future__ import annotations

from typing import Literal

import torch
from pydantic import Field
from torch import Tensor

from leaktight.attacks.descent import Descent, Walk


class LbfgsDescent(Descent):
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
    def remembered(self) -> int:
        """Two vectors for each remembered pair, and the last step's."""
        return 2 * self.history + 2

    def walk(self, points: Tensor) -> Walk:
        """Start with an empty history."""
        return LbfgsWalk(points, self.learning_rate, self.history)


class LbfgsWalk(Walk):
    """Points, their last gradients, and a ring of pairs for each row."""

    gradient_tolerance = 1e-7
    descent_tolerance = 1e-9
    curvature_tolerance = 1e-10

    def __init__(self, points: Tensor, learning_rate: float, history: int) -> None:
        rows, width = points.shape
        self.learning_rate = learning_rate
        self.size = history
        self.steps = 0
        self.moves = points.new_zeros(rows, history, width)
        self.changes = points.new_zeros(rows, history, width)
        # The small system is solved in double where the device has it.
        self.exact = torch.float32 if points.device.type == "mps" else torch.float64
        self.products = torch.zeros(rows, history, history, dtype=self.exact, device=points.device)
        self.squares = torch.zeros_like(self.products)
        self.pushed = torch.zeros(rows, dtype=torch.long, device=points.device)
        self.gamma = points.new_ones(rows)
        self.last_gradients = torch.zeros_like(points)
        self.last_moves = torch.zeros_like(points)

    def step(self, points: Tensor, gradients: Tensor, rate: float) -> tuple[Tensor, Tensor]:
        """Move each row along its quasi-Newton direction."""
        if self.steps == 0:
            direction = -gradients
            length = (1 / gradients.abs().sum(1)).clamp_max(1.0) * self.learning_rate * rate
        else:
            direction = -self._direction(gradients, gradients - self.last_gradients)
            length = torch.full_like(self.gamma, self.learning_rate * rate)
        self.steps += 1
        resting = (gradients.abs().amax(1) <= self.gradient_tolerance) | (
            (gradients * direction).sum(1) > -self.descent_tolerance
        )
        self.last_gradients = gradients
        self.last_moves = torch.where(resting[:, None], 0.0, length[:, None] * direction)
        return points + self.last_moves, resting

    def keep(self, rows: Tensor) -> None:
        """Forget all rows but these."""
        for name in ("moves", "changes", "products", "squares", "pushed", "gamma", "last_gradients", "last_moves"):
            setattr(self, name, getattr(self, name)[rows])

    def _direction(self, gradients: Tensor, change: Tensor) -> Tensor:
        """Push the newest pair where it curves upwards, and return H g."""
        used = self._push(change)
        if used == 0:
            return self.gamma[:, None] * gradients
        moves, changes = self.moves[:, :used], self.changes[:, :used]
        # One pass over the history serves the newest column of S'Y and Y'Y as well as S'g and Y'g.
        both = torch.stack([change, gradients], dim=1)
        with_moves = torch.bmm(both, moves.transpose(1, 2)).to(self.exact)
        with_changes = torch.bmm(both, changes.transpose(1, 2)).to(self.exact)
        self._record(with_moves[:, 0], with_changes[:, 0])
        along_moves, along_changes = self._solve(with_moves[:, 1], with_changes[:, 1], used)
        correction = torch.bmm(along_moves, moves) + torch.bmm(along_changes, changes)
        return self.gamma[:, None] * gradients + correction[:, 0]

    def _push(self, change: Tensor) -> int:
        curvature = (change * self.last_moves).sum(1)
        self.curved = curvature > self.curvature_tolerance
        self.slot = (self.pushed - (~self.curved).long()).clamp_min(0) % self.size
        rows = self.curved.nonzero()[:, 0]
        slots = (self.pushed % self.size)[rows]
        self.slot[rows] = slots
        self.moves[rows, slots] = self.last_moves[rows]
        self.changes[rows, slots] = change[rows]
        self.gamma[rows] = (curvature / change.square().sum(1))[rows]
        self.pushed[rows] += 1
        return int(self.pushed.max().clamp_max(self.size))

    def _record(self, with_moves: Tensor, with_changes: Tensor) -> None:
        """Enter the newest pair's products: column of S'Y, row and column of Y'Y; S'Y's row is only used when older than its column."""
        rows = self.curved.nonzero()[:, 0]
        slots, used = self.slot[rows], with_moves.shape[1]
        self.products[rows, :used, slots] = with_moves[rows]
        self.squares[rows, :used, slots] = with_changes[rows]
        self.squares[rows, slots, :used] = with_changes[rows]

    def _solve(self, moves: Tensor, changes: Tensor, used: int) -> tuple[Tensor, Tensor]:
        """Return the weights p and gamma q of the compact form, in the order of the slots."""
        slots = torch.arange(used, device=moves.device)
        age = (slots[None] - self.pushed[:, None]) % self.size  # the oldest pair first, once the ring is full
        age = torch.where(self.pushed[:, None] < self.size, slots[None].expand_as(age), age)
        order = age.argsort(1)
        inverse = order.argsort(1)
        empty = slots[None] >= self.pushed[:, None].clamp_max(self.size)
        products = _reordered(self.products[:, :used, :used], order).triu()
        squares = _reordered(self.squares[:, :used, :used], order)
        diagonal = products.diagonal(dim1=1, dim2=2)
        gamma = self.gamma.to(self.exact)[:, None, None]
        upper = products + torch.diag_embed(empty.to(self.exact))
        against_moves = moves.gather(1, order).masked_fill(empty, 0.0)[..., None]
        against_changes = changes.gather(1, order).masked_fill(empty, 0.0)[..., None]
        inner = torch.linalg.solve_triangular(upper, against_moves, upper=True)
        outer = diagonal[..., None] * inner + gamma * (squares @ inner) - gamma * against_changes
        weights = torch.linalg.solve_triangular(upper.mT, outer, upper=False)
        along_moves = weights[..., 0].gather(1, inverse)
        along_changes = (-gamma * inner)[..., 0].gather(1, inverse)
        return along_moves.to(self.moves.dtype)[:, None], along_changes.to(self.moves.dtype)[:, None]


def _reordered(matrix: Tensor, order: Tensor) -> Tensor:
    rows = order[:, :, None].expand_as(matrix)
    return matrix.gather(1, rows).gather(2, order[:, None, :].expand_as(matrix))
