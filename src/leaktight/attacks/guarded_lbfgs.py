"""L-BFGS that never goes uphill: a step that does not lower the objective is taken back and made shorter."""

from __future__ import annotations

import math
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor

from leaktight.attacks.lbfgs import LbfgsState
from leaktight.attacks.optimiser import AdamState, SearchOptimiser


class SearchGuardedLBFGS(SearchOptimiser):
    """L-BFGS with backtracking, each row by itself, all rows at once.

    A trial point is accepted if the objective fell by a ten-thousandth of what the slope promised. Else the step is
    shortened to where a parabola through what is known has its minimum, between a twentieth and a half of it, and tried
    again. After six vain trials a row forgets its history and goes down the slope. If that fails too, or if the
    objective hardly falls although the slope promises more, as it happens at the kinks of ReLU networks, Adam takes the
    row over from its lowest point. One evaluation is one trial.

    Args:
        learning_rate: the length of a step along the direction, above 0.
        history: how many pairs are remembered, at least 1. More pays where the law is narrow.
        reach: how long a move may be, relative to the square root of the number of unknowns; in whitened coordinates
            that is how far the truth is from the middle.
        adam: the learning rate of Adam where L-BFGS stalls; 0 lets such a row rest.
    """

    kind: Literal["guarded_lbfgs"] = "guarded_lbfgs"
    learning_rate: float = Field(1.0, gt=0)
    history: int = Field(50, ge=1)
    reach: float = Field(1.0, gt=0)
    adam: float = Field(0.03, ge=0)

    @property
    def vectors_per_row(self) -> int:
        """Two vectors for each remembered pair, the last step's, the accepted point, and Adam's moments."""
        return 2 * self.history + 5

    def start(self, points: Tensor) -> GuardedLbfgsState:
        """Start with an empty history."""
        return GuardedLbfgsState(points, self)


class GuardedLbfgsState(LbfgsState):
    """The last accepted point of each row, and the move that is tried from there."""

    recovers = True
    kept = (*LbfgsState.kept, "accepted", "lowest", "slopes", "vain", "fresh", "promise", "stalled")
    enough, most_vain = 1e-4, 6
    shortest, longest = 0.05, 0.5

    def __init__(self, points: Tensor, settings: SearchGuardedLBFGS) -> None:
        super().__init__(points, settings.learning_rate, settings.history)
        rows = len(points)
        self.reach = settings.reach * math.sqrt(points.shape[1])
        self.adam = AdamState(points, settings.adam)
        self.stalled = torch.zeros(rows, dtype=torch.bool, device=points.device)
        self.accepted = points.clone()
        self.lowest = points.new_full((rows,), math.inf)
        self.slopes, self.promise = points.new_zeros(rows), points.new_zeros(rows)
        self.vain = torch.zeros(rows, dtype=torch.long, device=points.device)
        self.fresh = torch.ones(rows, dtype=torch.bool, device=points.device)

    def step(self, points: Tensor, values: Tensor, gradients: Tensor, rate: float) -> tuple[Tensor, Tensor]:
        """Continue from where the objective fell; go back and try a shorter step where it did not."""
        # Near the minimum a fall drowns in rounding: what is equal to single precision counts as having fallen.
        slack = self.lowest.abs().nan_to_num(posinf=0.0) * 1e-7
        fell = values <= self.lowest + self.enough * self.slopes + slack
        moves, resting = self._guarded_next(gradients, rate, fell)
        self.accepted = torch.where(fell[:, None], points, self.accepted)
        shrunk = self.last_moves * self._shorter(values)[:, None]
        self.lowest, self.vain = torch.where(fell, values, self.lowest), torch.where(fell, 0, self.vain + 1)
        lost = ~fell & (self.vain >= self.most_vain)
        rest = (fell & resting) | (lost & self.fresh)
        self._forget(lost)
        down = -self.last_gradients * self._first_length(self.last_gradients, rate)[:, None]
        moves = torch.where(fell[:, None], moves, torch.where(lost[:, None], down, shrunk))
        self.last_gradients = torch.where(fell[:, None], gradients, self.last_gradients)
        self.last_products = torch.where(fell[:, None, None], self.products, self.last_products)
        self.slopes = (self.last_gradients * moves).sum(1)
        self.promise = torch.where(fell, -0.5 * self.slopes, self.promise)
        self.last_moves = moves
        self._stall(lost & rest)
        moved, rest = self.accepted + moves, rest & ~self.stalled
        if not bool(self.stalled.any()):
            return moved, rest
        # A row that begins starts where it was lowest; later ones follow the gradient of the point at which they are.
        new = self.stalled & (self.adam.steps[:, 0] == 0)
        start = torch.where(new[:, None], self.accepted, points)
        slope = torch.where(new[:, None], self.last_gradients, gradients)
        by_adam = self.adam.step(start, values, slope, rate)[0]
        self.adam.begin(~self.stalled)
        return torch.where(self.stalled[:, None], by_adam, moved), rest

    def revive(self, rows: Tensor, least: float) -> Tensor:
        """Continue by Adam where L-BFGS hardly moves although the quadratic model promises more than `least`."""
        revived = rows & ~self.stalled & (self.promise > least)
        self._stall(revived)
        return revived & self.stalled

    def _stall(self, rows: Tensor) -> None:
        if self.adam.learning_rate:
            self.stalled |= rows

    def keep(self, rows: Tensor) -> None:
        """Forget all rows but these."""
        super().keep(rows)
        self.adam.keep(rows)

    def _guarded_next(self, gradients: Tensor, rate: float, fell: Tensor) -> tuple[Tensor, Tensor]:
        """Return the next moves of the rows whose objective fell, none longer than they may be."""
        self._fell = fell
        change = gradients - self.last_gradients
        moves = self._newton(gradients, change, -self.learning_rate * rate)
        first = -gradients * self._first_length(gradients, rate)[:, None]
        self.fresh = torch.where(fell, self.pushed == 0, self.fresh)
        moves = torch.where((self.pushed == 0)[:, None], first, moves)
        slopes = (gradients * moves).sum(1)
        resting = (gradients.abs().amax(1) <= self.gradient_tolerance) | (slopes > -self.descent_tolerance)
        length = torch.linalg.vector_norm(moves, dim=1, keepdim=True)
        moves = moves * (self.reach / length.clamp_min(1e-30)).clamp_max(1.0)
        return torch.where(resting[:, None], 0.0, moves), resting

    def _curves_up(self, curvature: Tensor, change: Tensor) -> Tensor:
        size: Tensor = torch.linalg.vector_norm(change, dim=1) * torch.linalg.vector_norm(self.last_moves, dim=1)
        return self._fell & self.lowest.isfinite() & (curvature > 1e-8 * size) & (size > 0)

    def _first_length(self, gradients: Tensor, rate: float) -> Tensor:
        first: Tensor = 1 / gradients.abs().sum(1).clamp_min(1e-30)
        return first.clamp_max(1.0) * self.learning_rate * rate

    def _shorter(self, values: Tensor) -> Tensor:
        """Return what to multiply a vain move with."""
        over = values - self.lowest - self.slopes
        return (
            (-self.slopes / (2 * over))
            .nan_to_num(self.shortest, self.shortest, self.shortest)
            .clamp(self.shortest, self.longest)
        )

    def _forget(self, rows: Tensor) -> None:
        """Start the history of these rows anew."""
        if bool(rows.any()):
            for name in ("pairs", "last_products", "inverse", "transposed", "squares", "diagonal", "pushed"):
                getattr(self, name)[rows] = 0
            self.gamma[rows], self.vain[rows], self.fresh[rows] = 1.0, 0, True
