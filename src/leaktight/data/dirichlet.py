"""Dirichlet: everyone owns a random mix of classes."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from leaktight.core.random import Stream
from leaktight.data.partition import Partition, shuffle_by_class


class Dirichlet(Partition):
    """Split each class by random shares: q ~ Dirichlet(alpha, ..., alpha) over the participants, anew for each class.

    A participant's share of a class has mean 1/P and variance (P - 1) / (P^2 (P alpha + 1)). Who would own nothing gets
    one example from whoever owns most.

    Args:
        alpha: the concentration, above 0. Lower is more skewed: near 0 each class has one owner, large values are like
            `equal`.

    Example:
        >>> parts = Dirichlet(alpha=0.5).split(torch.arange(100) % 10, 4, torch.Generator().manual_seed(0))
        >>> sum(map(len, parts)), min(map(len, parts)) > 0
        (100, True)

    Differs from the paper: nobody is left with nothing; alpha is a setting (the paper uses 0.5).

    References:
        M. Yurochkin et al., "Bayesian Nonparametric Federated Learning of Neural Networks", ICML 2019: the
        heterogeneous partition of the experiments.
    """

    kind: Literal["dirichlet"] = "dirichlet"
    alpha: Annotated[float, Field(gt=0)] = 0.9

    def deal(self, labels: Tensor, parts: int, rng: Stream) -> list[Tensor]:
        """Draw shares for each class and cut it there."""
        dealt: list[list[Tensor]] = [[] for _ in range(parts)]
        for positions in shuffle_by_class(labels, rng).values():
            cuts = np.rint(np.cumsum(_shares(self.alpha, parts, rng))[:-1] * len(positions)).astype(int)
            for part, share in enumerate(positions.tensor_split(torch.from_numpy(cuts))):
                dealt[part].append(share)
        return _none_empty([torch.cat(shares) for shares in dealt])


def _shares(alpha: float, parts: int, rng: Stream) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    # torch has no Dirichlet that takes a generator; NumPy's is seeded from the stream.
    seed = int(torch.randint(2**63 - 1, (), generator=rng).item())
    # Beyond these the draw is all or nothing, or equal, to the last digit, and the sampler's own arithmetic gives out.
    return np.random.default_rng(seed).dirichlet([min(max(alpha, 1e-6), 1e12)] * parts)


def _none_empty(dealt: list[Tensor]) -> list[Tensor]:
    for part, positions in enumerate(dealt):
        if len(positions) == 0:
            largest = max(range(len(dealt)), key=lambda other: len(dealt[other]))
            dealt[part], dealt[largest] = dealt[largest][:1], dealt[largest][1:]
    return dealt
