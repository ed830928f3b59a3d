"""Rank one: what a linear layer saw of one example, by all rows of its gradient at once."""

from __future__ import annotations

import dataclasses

import torch
from torch import Tensor

STEPS = 100
"""How often the two sides of a weighted fit take turns, at most."""
SETTLED = 1e-10
ROUNDING = 1e-7
"""What single precision leaves of an entry, as a share of the largest."""


@dataclasses.dataclass(frozen=True)
class RankOne:
    r"""A matrix taken for \(\delta y^T\).

    Args:
        slopes: \(\delta\), (units,).
        seen: y, (width + 1,), of length 1.
        spread: the standard deviation of each entry of y.
    """

    slopes: Tensor
    seen: Tensor
    spread: Tensor


def fit_rank_one(matrix: Tensor, precision: Tensor | None = None) -> RankOne:
    r"""Return the rank-one matrix next to this one.

    For one example the gradient of z = W x + b is \([\delta x^T | \delta]\), under any loss: each row is a copy of
    \(y = (x, 1)\). Where all entries have noise of one law, the best y is the leading right singular vector (total
    least squares). Where the law differs from entry to entry, with precision P,

    .. math:: \min_{\delta, y} \sum_{ij} P_{ij} (M_{ij} - \delta_i y_j)^2

    is solved by turns from there. A precision of 0 leaves an entry out. Where the fit leaves more than this law says,
    the spread is that of what it leaves.

    Args:
        matrix: [dL/dW | dL/db], (units, width + 1).
        precision: 1 / variance of each entry; None if it is the same for all, at a level that nobody knows: it is then
            read off what the fit leaves.

    Example:
        >>> fit = fit_rank_one(torch.tensor([[0.5, 1.0], [-1.0, -2.0]]).double())
        >>> fit.seen / fit.seen[-1]
        tensor([0.5000, 1.0000], dtype=torch.float64)

    References: Golub and Van Loan 1980, total least squares; Geiping et al. 2020, proposition 3.1, for a single row.
    """
    y = _leading(matrix)
    slopes = matrix @ y
    free, excess = max((matrix.shape[0] - 1) * (matrix.shape[1] - 1), 1), 1.0
    if precision is None:
        variance = (matrix - slopes[:, None] * y).square().sum() / free
        variance = variance.clamp(min=(ROUNDING * matrix.abs().max()).square().item() + 1e-60)
        precision = (1 / variance).expand_as(matrix)
    else:
        y, slopes = _by_turns(matrix, precision, y)
        # A law that does not explain what is left is not the law: doubts grow as much as it falls short.
        left = (precision * (matrix - slopes[:, None] * y).square()).sum().item() / free
        excess = max(left, 1.0) ** 0.5
    weight = (precision * slopes[:, None].square()).sum(0)
    return RankOne(slopes, y, excess * weight.clamp(min=1e-300).rsqrt())


def _leading(matrix: Tensor) -> Tensor:
    """Return the leading right singular vector."""
    if matrix.shape[0] <= matrix.shape[1]:
        # By the smaller of the two squares: a layer may see many thousand numbers.
        slopes = torch.linalg.eigh(matrix @ matrix.T).eigenvectors[:, -1]
        seen: Tensor = matrix.T @ slopes
        unit: Tensor = seen / seen.norm().clamp(min=1e-300)
        return unit
    vectors: Tensor = torch.linalg.eigh(matrix.T @ matrix).eigenvectors
    return vectors[:, -1]


def _by_turns(matrix: Tensor, precision: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Return the weighted fit, each side by least squares given the other."""
    weighted = precision * matrix
    slopes = y.new_zeros(len(matrix))
    for _ in range(STEPS):
        before = y
        slopes = (weighted @ y) / (precision @ y.square()).clamp(min=1e-300)
        y = (weighted.T @ slopes) / (precision.T @ slopes.square()).clamp(min=1e-300)
        size = y.norm().clamp(min=1e-300)
        y, slopes = y / size, slopes * size
        if (y - before).norm() < SETTLED:
            break
    return y, slopes
