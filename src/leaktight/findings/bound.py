"""Bound: what an accounted epsilon implies for an attacker who asks whether an example was there."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

from leaktight.core.budget import Budget
from leaktight.core.display import percent

FALSE_POSITIVES = 0.01
"""The share of false alarms at which an attacker is taken to work: someone who accuses more often is not believed."""
TELLING = 0.1
"""The largest true positive rate that counts as protection: ten times what guessing gets at `FALSE_POSITIVES`."""


@dataclasses.dataclass(frozen=True)
class Bound:
    """A privacy budget and what it implies.

    Args:
        budget: the account.
        rate: the largest true positive rate at 1 % false positives that it allows.
    """

    budget: Budget
    rate: float

    @property
    def is_telling(self) -> bool:
        """Whether it implies enough to be called protection."""
        return self.rate <= TELLING

    @property
    def promise(self) -> str:
        """How much it promises where that is not enough."""
        return "next to nothing" if self.rate > 0.9 else "little"

    def __str__(self) -> str:
        """Say what it implies.

        Example:
            >>> bound = Bound(Budget("dp_sgd", 8.0, 1e-5, "Poisson sampling at rate 0.1"), 0.9997)
            >>> print(bound)  # doctest: +NORMALIZE_WHITESPACE
            At 1 % false alarms an attacker may still find nearly all of the examples that were there,
            so the epsilon promises next to nothing.
        """
        if self.is_telling:
            return (
                f"At 1 % false alarms no attacker finds more than {_rate(self.rate)} of the examples that were there."
            )
        said = f"At 1 % false alarms an attacker may still find {_rate(self.rate)} of the examples that were there"
        return f"{said}, so the epsilon promises {self.promise}."


def largest_rate(epsilon: float, delta: float, false_positives: float = FALSE_POSITIVES) -> float:
    r"""Return the largest true positive rate that (epsilon, delta)-differential privacy allows at a false alarm rate.

    .. math:: \beta \le \min(1, \; e^\varepsilon \alpha + \delta, \; 1 - e^{-\varepsilon} (1 - \alpha - \delta))

    Args:
        epsilon: at least 0.
        delta: in [0, 1].
        false_positives: alpha, in [0, 1].

    Example:
        >>> round(largest_rate(1.0, 1e-5), 4), round(largest_rate(0.0, 0.0), 4), largest_rate(1e6, 1e-5)
        (0.0272, 0.01, 1.0)

    References:
        Kairouz, Oh and Viswanath, The Composition Theorem for Differential Privacy, 2015, Theorem 2.1 (both lines of
        the trade-off).
    """
    # Beyond 700 the exponential overflows, and everything is allowed long before.
    grown = math.exp(min(epsilon, 700.0))
    return max(0.0, min(1.0, grown * false_positives + delta, 1 - (1 - false_positives - delta) / grown))


def bound_of(budgets: Sequence[Budget], of_examples: bool) -> Bound | None:
    """Return the tightest bound that a row's budgets give; None if they give none.

    What a training run spent counts before what was spent on messages that only an audit asked for.

    Args:
        budgets: what was accounted for.
        of_examples: whether the leak is about single examples; else only an account of whole messages bounds it.
    """
    sound = [one for one in budgets if one.is_bound and (of_examples or one.whole_messages)]
    trained = [one for one in sound if not one.attacked]
    found = [Bound(one, largest_rate(one.epsilon, one.delta)) for one in trained or sound if one.delta is not None]
    return min(found, key=lambda bound: bound.rate, default=None)


def _rate(rate: float) -> str:
    return "nearly all" if rate > 0.99 else percent(rate) if rate >= 0.1 else f"{100 * rate:.1f} %"
