"""Choice: which of several defences is the best that was shown to help, and which cannot be told apart from it."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import NamedTuple

from leaktight.core.metric import Reading, quantity_of
from leaktight.findings.verdict import Judgement
from leaktight.statistics.pooling import leakage, leaks_more


class Choice(NamedTuple):
    """A defence that may be recommended.

    Args:
        best: the one with the best word, then the one under which the strongest attack gets least, then the cheapest.
        alike: those of the same word whose leak cannot be told apart from it by the intervals, cheapest first.
    """

    best: Judgement
    alike: tuple[Judgement, ...] = ()


def choose(judged: Sequence[Judgement], budget: float = float("inf")) -> Choice | None:
    """Return the best of the defences that were shown to help and have a price; None if there is none.

    What another dominates is never chosen: that is, another has a word as good, leaks no more on the printed numbers
    and costs no more, and is better in one of these.

    Args:
        judged: what was found about one kind of leak in one scenario.
        budget: the largest price, as a share of accuracy.
    """
    able = [one for one in judged if one.may_be_advised and price_of(one) <= budget and one.worst.loss is not None]
    kept = [one for one in able if not any(dominates(other, one) for other in able)]
    if not kept:
        return None
    best = min(kept, key=lambda one: (rank_of(one), one.kind.severity(one.worst)[:1], price_of(one)))
    alike = [one for one in able if one is not best and rank_of(one) == rank_of(best) and _overlap(one, best)]
    return Choice(best, tuple(sorted(alike, key=price_of)))


def dominates(one: Judgement, other: Judgement) -> bool:
    """Return whether one is as good as another in word, leak and price, and better in one of them.

    Leaks are compared by the number that is printed, and only where both are judged by the same.
    """
    first, second = one.reading, other.reading
    if first is None or second is None or first.name != second.name or one.worst.loss is None:
        return False
    return _is_better((rank_of(one), *_round(one, first)), (rank_of(other), *_round(other, second)))


def better_by_number(judged: Sequence[Judgement], best: Judgement) -> list[Judgement]:
    """Return what was not shown to help, and yet leaks and costs no more than a choice on the printed numbers.

    Its numbers show nothing, but a reader sees them beside the choice.
    """
    return [
        one
        for one in judged
        if one.status in ("unknown", "bounded")
        and not one.may_be_advised
        and one.worst.loss is not None
        and one.reading is not None
        and best.reading is not None
        and one.reading.name == best.reading.name
        and _is_better(_round(one, one.reading), _round(best, best.reading))
    ]


def _is_better(numbers: Sequence[float], others: Sequence[float]) -> bool:
    """Return whether no number is larger than its like, and one is smaller."""
    return all(map(operator.le, numbers, others)) and any(map(operator.lt, numbers, others))


def _round(judgement: Judgement, reading: Reading) -> tuple[float, float]:
    """Return how much leaks, and the price in points, by as many digits as people are shown."""
    quantity, leak = quantity_of(reading.name), leakage(reading)
    digits = None if quantity.digits is None else quantity.digits + 2 * (quantity.unit == "%")
    return float(f"{leak:.3g}") if digits is None else round(leak, digits), round(100 * price_of(judgement), 1)


def rank_of(judgement: Judgement) -> int:
    """Return what recommendations are ranked by first: a bound, then what was not broken, then what is reduced."""
    return 0 if judgement.is_good else 1 if judgement.withstood else 2


def price_of(judgement: Judgement) -> float:
    """Return what a defence costs, as a share of accuracy; without a measured price, more than anybody would pay."""
    loss = judgement.worst.loss
    return float("inf") if loss is None else loss.value


def _overlap(one: Judgement, other: Judgement) -> bool:
    """Return whether the intervals of two leaks overlap: then nobody can say which leaks more."""
    first, second = one.reading, other.reading
    if first is None or second is None or first.name != second.name:
        return False
    return not leaks_more(first, second) and not leaks_more(second, first)
