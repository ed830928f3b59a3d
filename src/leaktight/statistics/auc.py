"""AUC: how well scores tell positives from negatives, with its interval."""

from __future__ import annotations

import math
from statistics import NormalDist

import torch
from torch import Tensor

from leaktight.core.errors import InvalidValue
from leaktight.statistics.interval import Interval

GUESSING = 0.5
"""The AUC of scores that know nothing."""


def auc(scores: Tensor, positive: Tensor) -> float:
    r"""Return the area under the ROC curve: the chance that a positive scores above a negative, a tie counting half.

    .. math:: \frac{1}{mn} \sum_{i=1}^m \sum_{j=1}^n \left[ [x_i > y_j] + \tfrac12 [x_i = y_j] \right]

    Args:
        scores: one number for each example; higher means more likely positive.
        positive: which examples are positive; both kinds must be there.

    Example:
        >>> auc(torch.tensor([0.1, 0.4, 0.35, 0.8]), torch.tensor([0, 0, 1, 1]))
        0.75
    """
    ups, _ = placements(scores, positive)
    return ups.mean().item()


def delong(scores: Tensor, positive: Tensor, level: float = 0.95) -> tuple[float, Interval]:
    r"""Return the AUC and DeLong's interval, which holds for the examples as a sample, not for the training run.

    With \(V_i\) the share of negatives below positive i and \(W_j\) the share of positives above negative j, the
    variance is \(\mathrm{var}(V)/m + \mathrm{var}(W)/n\). The interval is cut to [0, 1]; at an AUC of 0 or 1 it has no
    width, and with one example of a kind there is none.

    Args:
        scores: one number for each example; higher means more likely positive.
        positive: which examples are positive; both kinds must be there.
        level: the coverage in (0, 1); larger is wider.

    Example:
        >>> value, (low, high) = delong(torch.tensor([0.1, 0.4, 0.35, 0.8]), torch.tensor([0, 0, 1, 1]))
        >>> value, round(low, 2), high
        (0.75, 0.06, 1.0)

    References:
        DeLong, DeLong and Clarke-Pearson, Comparing the Areas under Two or More Correlated ROC Curves, 1988; Sun and
        Xu, Fast Implementation of DeLong's Algorithm, 2014.
    """
    if not 0 < level < 1:
        raise InvalidValue(f"The `level` of an interval must be a number in (0, 1). Got {level} instead.")
    ups, downs = placements(scores, positive)
    value = ups.mean().item()
    if min(len(ups), len(downs)) < 2:
        return value, (None, None)
    spread = math.sqrt((ups.var() / len(ups) + downs.var() / len(downs)).item()) * NormalDist().inv_cdf((1 + level) / 2)
    return value, (max(0.0, value - spread), min(1.0, value + spread))


def delong_difference(one: Tensor, other: Tensor, positive: Tensor, level: float = 0.95) -> tuple[float, Interval]:
    r"""Return the difference of two AUCs on the same examples, with DeLong's interval.

    With placements \(V^1, V^2\) of positives and \(W^1, W^2\) of negatives by the two scores, the variance is
    \(\mathrm{var}(V^1 - V^2)/m + \mathrm{var}(W^1 - W^2)/n\): what both get wrong counts for neither. Two scores that
    order all examples alike differ by 0, with no width.

    Args:
        one: one number for each example; higher means more likely positive.
        other: another one.
        positive: which examples are positive; both kinds must be there.
        level: the coverage in (0, 1); larger is wider.

    Example:
        >>> truth = torch.tensor([0, 0, 1, 1])
        >>> delong_difference(torch.tensor([0.1, 0.4, 0.35, 0.8]), torch.tensor([1.0, 2.0, 3.0, 4.0]), truth)[0]
        -0.25

    References:
        DeLong, DeLong and Clarke-Pearson, Comparing the Areas under Two or More Correlated ROC Curves, 1988.
    """
    first, second = placements(one, positive), placements(other, positive)
    ups, downs = first[0] - second[0], first[1] - second[1]
    value = ups.mean().item()
    if min(len(ups), len(downs)) < 2:
        return value, (None, None)
    spread = math.sqrt((ups.var() / len(ups) + downs.var() / len(downs)).item()) * NormalDist().inv_cdf((1 + level) / 2)
    return value, (max(-1.0, value - spread), min(1.0, value + spread))


def placements(scores: Tensor, positive: Tensor) -> tuple[Tensor, Tensor]:
    """Return for each positive the share of negatives below it, and for each negative the share of positives above it.

    The mean of either is the AUC.

    Example:
        >>> placements(torch.tensor([0.1, 0.4, 0.35, 0.8]), torch.tensor([0, 0, 1, 1]))
        (tensor([0.5000, 1.0000], dtype=torch.float64), tensor([1.0000, 0.5000], dtype=torch.float64))
    """
    scores, positive = scores.detach().flatten().cpu().double(), positive.detach().flatten().cpu().bool()
    if len(scores) != len(positive):
        raise InvalidValue(f"An AUC needs one score for each of {len(positive)} examples. Got {len(scores)} instead.")
    if not torch.isfinite(scores).all():
        raise InvalidValue("An AUC needs finite scores. Got NaN or infinite ones instead.")
    ups, downs = scores[positive], scores[~positive]
    if not len(ups) or not len(downs):
        raise InvalidValue(
            f"An AUC needs positives and negatives. Got {len(ups)} positives and {len(downs)} negatives."
        )
    return _share_below(ups, downs), 1 - _share_below(downs, ups)


def _share_below(values: Tensor, others: Tensor) -> Tensor:
    ordered = others.sort().values
    below, up_to = torch.searchsorted(ordered, values), torch.searchsorted(ordered, values, right=True)
    return (below + up_to).double() / (2 * len(ordered))
