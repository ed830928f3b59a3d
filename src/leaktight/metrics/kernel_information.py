"""Kernel bounds on mutual information: how many of some inputs can be told apart by noisy activations."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from leaktight.core.errors import InvalidValue

LOWER, UPPER = 4, 1
"""How much wider the kernel of each bound is than the noise, in variance."""

_ROWS, _COLUMNS = 1024, 8192


def information_bounds(squared: Tensor, noise: float) -> tuple[float, float]:
    r"""Return a lower and an upper bound, in bits, on what noisy activations tell of which input they belong to.

    With X uniform over N inputs, \(t_i\) the activations of the i-th, and \(T = t_X + \sigma \epsilon\) with standard
    normal \(\epsilon\), both

    .. math:: -\frac{1}{N} \sum_i \log_2 \frac{1}{N} \sum_j \exp\left(-\frac{\|t_i - t_j\|^2}{2 \alpha \sigma^2}\right)

    bound \(I(X; T)\): from above with \(\alpha = 1\), from below with \(\alpha = 4\). They are 0 if all activations are
    equal, and \(\log_2 N\), all that is to be told of N inputs, if they are far apart.

    Args:
        squared: \(\|t_i - t_j\|^2\), N rows of N.
        noise: \(\sigma\), above 0, in the activations' units; the larger, the less is told.

    Example:
        >>> apart = squared_distances(torch.eye(4), torch.eye(4))
        >>> information_bounds(apart, noise=0.01)
        (2.0, 2.0)
        >>> [round(bits, 3) for bits in information_bounds(apart, noise=1.0)]
        [0.262, 0.927]

    Differs from the paper: its equation 12 lacks the exponential.

    References:
        Mo et al., Layer-wise Characterization of Latent Information Leakage in Federated Learning, 2021, eq. 12.
        Kolchinsky and Tracey, Estimating Mixture Entropy with Pairwise Distances, 2017.
    """
    if not 0 < noise < math.inf:
        raise InvalidValue(f"The `noise` of a bound on information must be a number in (0, inf). Got {noise} instead.")
    # What rounding leaves of a point's distance to itself would count for much under little noise.
    exact = squared.double().clone().fill_diagonal_(0)
    lower, upper = (_bits(exact, 2 * alpha * noise**2) for alpha in (LOWER, UPPER))
    return lower, upper


def squared_distances(rows: Tensor, others: Tensor) -> Tensor:
    """Return the squared Euclidean distance of each of some rows to each of others, in double precision.

    Example:
        >>> squared_distances(torch.tensor([[0.0, 0.0]]), torch.tensor([[3.0, 4.0], [0.0, 0.0]])).tolist()
        [[25.0, 0.0]]
    """
    distances = torch.zeros(len(rows), len(others), dtype=torch.float64)
    for pair in zip(*(torch.split(each.detach().cpu(), _COLUMNS, dim=1) for each in (rows, others)), strict=True):
        some, same = (each.double() for each in pair)
        # The same shift of both changes no distance, and keeps large common parts from drowning small differences.
        centre = same.mean(0)
        some, same = some - centre, same - centre
        distances += some.square().sum(1)[:, None] + same.square().sum(1) - 2 * some @ same.T
    return distances.clamp_min(0)


def _bits(squared: Tensor, width: float) -> float:
    logs = torch.cat([torch.logsumexp(-rows / width, dim=1) for rows in torch.split(squared, _ROWS)])
    most = math.log(len(squared))
    return (most - logs.mean().item()) / math.log(2)
