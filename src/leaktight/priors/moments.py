"""Moments: class means and a covariance that is fit for many numbers and few examples."""

from __future__ import annotations

import dataclasses
from typing import Self

import scipy.linalg
import torch
from torch import Tensor

RANK = 512
"""How many directions get a variance of their own, at most: more cost a search more than they gain."""
FLOOR = 0.01
"""The least variance of a number or direction: what never varied in public examples may still vary in others."""


@dataclasses.dataclass(frozen=True)
class Shrinkage:
    """How far estimates are drawn to what needs fewer examples.

    Args:
        means: class means to the mean of all, by the weight of so many examples.
        scales: variances of single numbers to the mean of all, by the weight of so many examples.
        rank: how many directions get a variance of their own, at most.
        directions: these variances to that of the rest, in [0, 1].
        rest: the variance of all other directions; None to take that of the examples.
    """

    means: float = 0.0
    scales: float = 0.0
    rank: int = RANK
    directions: float = 0.0
    rest: float | None = None


@dataclasses.dataclass(frozen=True)
class Moments:
    r"""Class means \(m_c\) and a covariance \(D (\rho I + U (v - \rho) U^T) D\): scales, and some directions.

    Args:
        means: \(m_c\), (classes, width).
        scales: the diagonal of \(D\), (width,).
        directions: \(U\), orthonormal, (width, rank).
        variances: \(v\) along them, (rank,).
        rest: \(\rho\), the variance in every other direction.
    """

    means: Tensor
    scales: Tensor
    directions: Tensor
    variances: Tensor
    rest: float

    @classmethod
    def of(cls, points: Tensor, labels: Tensor, classes: int, shrinkage: Shrinkage) -> Self:
        """Return the moments of some points.

        Args:
            points: (n, width), at least 2.
            labels: (n,).
            classes: how many there are.
            shrinkage: of each estimate.
        """
        means = class_means(points, labels, classes, shrinkage.means)
        deviations = points - means[labels]
        scales = variances_of(deviations, shrinkage.scales).sqrt()
        deviations = deviations / scales
        directions, variances = leading_directions(deviations, shrinkage.rank)
        rest = shrinkage.rest
        if rest is None:
            rest = remainder(deviations.square().mean(0).sum(), variances.sum(), *directions.shape)
        rest = max(rest, FLOOR)
        variances = ((1 - shrinkage.directions) * variances + shrinkage.directions * rest).clamp_min(FLOOR)
        return cls(means, scales, directions, variances, rest)


def class_means(points: Tensor, labels: Tensor, classes: int, pseudo_count: float) -> Tensor:
    """Return the mean of each class, drawn towards the mean of all; a class without points has that mean.

    Args:
        points: (n, width).
        labels: (n,).
        classes: how many there are.
        pseudo_count: the weight of the mean of all, in points.

    Example:
        >>> points = torch.tensor([[0.0], [2.0], [7.0]])
        >>> class_means(points, torch.tensor([0, 0, 1]), 3, 0.0).flatten().tolist()
        [1.0, 7.0, 3.0]
    """
    overall = points.mean(0)
    counts = torch.bincount(labels, minlength=classes).to(points)
    sums = points.new_zeros(classes, points.shape[1]).index_add(0, labels, points - overall)
    return overall + sums / (counts + pseudo_count).clamp_min(1.0)[:, None]


def variances_of(deviations: Tensor, pseudo_count: float) -> Tensor:
    """Return the variance of each number, drawn towards their mean by the weight of so many points.

    Example:
        >>> variances_of(torch.tensor([[1.0, 3.0], [-1.0, -3.0]]), 2.0).tolist()
        [3.0, 7.0]
    """
    variances = deviations.square().mean(0)
    share = len(deviations) / (len(deviations) + pseudo_count)
    return (share * variances + (1 - share) * variances.mean()).clamp_min(FLOOR)


def leading_directions(deviations: Tensor, rank: int) -> tuple[Tensor, Tensor]:
    """Return the leading eigenvectors, (width, rank), of the deviations' covariance, and their variances, falling.

    Of the two square matrices that have them, points by points or numbers by numbers, the smaller is taken apart.

    Args:
        deviations: from the mean, (n, width), at least 2.
        rank: how many, at most.
    """
    count, width = deviations.shape
    rank = min(count - 1, width, rank)
    if not rank:
        return deviations.new_zeros(width, 0), deviations.new_zeros(0)
    few = count < width
    square = (deviations @ deviations.T if few else deviations.T @ deviations) / count
    side = len(square)
    bounds = (side - rank, side - 1)
    values, vectors = (
        torch.from_numpy(part) for part in scipy.linalg.eigh(square.cpu().numpy(), subset_by_index=bounds)
    )
    # What is below this is rounding.
    known = (values > 1e-5 * values.amax()).nonzero().flatten().flip(0)
    variances, directions = values[known].to(deviations), vectors[:, known].to(deviations)
    if few:
        directions = torch.linalg.qr(deviations.T @ directions)[0]
    return directions, variances


def remainder(total: Tensor, led: Tensor, width: int, rank: int) -> float:
    """Return the mean variance in the directions that do not lead; if all lead, in all.

    Args:
        total: the sum of the variances in all directions.
        led: that in the leading ones.
        width: how many directions there are.
        rank: how many lead.
    """
    return float((total - led).clamp_min(0) / (width - rank) if rank < width else total / width)
