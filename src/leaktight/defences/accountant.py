"""Privacy accounting: what a sequence of noisy steps spent.

It is computed by Opacus' Rényi accountant, or exactly where nothing is sampled.
"""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Sequence


@functools.cache
def orders() -> tuple[float, ...]:
    """Return the Rényi orders that the accountant follows: Opacus' own, so that its numbers are Opacus' numbers."""
    from opacus.accountants import RDPAccountant  # here, because the import takes seconds

    return tuple(map(float, RDPAccountant.DEFAULT_ALPHAS))


@functools.cache
def step_cost(sample_rate: float, multiplier: float) -> tuple[float, ...]:
    """Return the Rényi divergence of one step at each order; the costs of several steps add up.

    Args:
        sample_rate: the probability with which each example takes part in the step, independently of the others, in (0,
            1].
        multiplier: the noise's standard deviation over the clipping norm; 0 costs infinitely much.

    Example:
        >>> step_cost(1.0, 2.0)[orders().index(2.0)]  # the Gaussian mechanism: order / (2 multiplier^2)
        0.25
    """
    from opacus.accountants.analysis.rdp import compute_rdp

    costs = compute_rdp(q=sample_rate, noise_multiplier=multiplier, steps=1, orders=list(orders()))
    # A divergence is never negative; for tiny rates the series is, by rounding.
    return tuple(max(0.0, float(cost)) for cost in costs)


def participation_cost(squares: float, multiplier: float) -> tuple[float, ...]:
    """Return the Rényi divergence at each order of one example's steps, without amplification by sampling.

    Steps that it took no part in cost it nothing, whoever else they are about. An example that is m times in a batch
    moves the sum by m times the clipping norm, so it counts as m^2 steps.

    Args:
        squares: the sum of m^2 over its steps, at least 0.
        multiplier: the noise's standard deviation over the clipping norm; 0 costs infinitely much.

    Example:
        >>> participation_cost(3, 2.0)[orders().index(2.0)]  # three times order / (2 multiplier^2)
        0.75
    """
    if not squares:
        return (0.0,) * len(orders())
    return tuple(math.inf if not multiplier else order * squares / (2 * multiplier**2) for order in orders())


def epsilon(costs: Sequence[float], delta: float) -> float:
    """Return the epsilon that the summed costs amount to at a delta.

    Args:
        costs: the sum of `step_cost` over all steps, one number per order.
        delta: the probability with which the guarantee may fail, in (0, 1).

    Example:
        >>> spent = [100 * cost for cost in step_cost(0.01, 1.1)]
        >>> round(epsilon(spent, 1e-5), 2)
        0.96
        >>> epsilon(step_cost(0.01, 0.0), 1e-5)
        inf
    """
    from opacus.accountants.analysis.rdp import get_privacy_spent

    with warnings.catch_warnings():
        # The bound holds at any order; a wider range of orders could only make it tighter.
        warnings.filterwarnings("ignore", message="Optimal order is the", category=UserWarning)
        spent, _ = get_privacy_spent(orders=list(orders()), rdp=list(costs), delta=delta)
    return max(0.0, float(spent))


def gaussian_epsilon(squares: float, multiplier: float, delta: float) -> float:
    """Return the exact epsilon, not a bound, of one example's steps, without amplification by sampling.

    With mu = sqrt(squares) / multiplier, epsilon is where Phi(mu / 2 - epsilon / mu) - e^epsilon Phi(-mu / 2 - epsilon
    / mu) is delta.

    Args:
        squares: the sum of m^2 over its steps, at least 0, if it is m times in a batch; see `participation_cost`.
        multiplier: the noise's standard deviation over the clipping norm; at 0 epsilon is infinite.
        delta: the probability with which the guarantee may fail, in (0, 1).

    Example:
        >>> round(gaussian_epsilon(4, 1.0, 1e-5), 2), round(epsilon(participation_cost(4, 1.0), 1e-5), 2)
        (10.0, 10.73)

    References: Balle and Wang, "Improving the Gaussian Mechanism for Differential Privacy", 2018, theorem 8; Dong, Roth
    and Su, "Gaussian Differential Privacy", 2022, corollary 3.3 (composition).
    """
    from scipy.special import log_ndtr

    if not squares:
        return 0.0
    if not multiplier:
        return math.inf
    mu = math.sqrt(squares) / multiplier

    def fails(spent: float) -> float:
        return math.exp(log_ndtr(mu / 2 - spent / mu)) - math.exp(spent + log_ndtr(-mu / 2 - spent / mu))

    low, high = 0.0, mu**2 / 2 + mu * math.sqrt(-2 * math.log(delta))
    if fails(low) <= delta:
        return 0.0
    # Halved until no number lies in between, and the upper end is kept: what is returned is never too small by more
    # than rounding.
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if fails(middle) > delta else (low, middle)
    return high
