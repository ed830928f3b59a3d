"""Choice: which of several defences is the best that was shown to help, and which cannot be told apart from it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

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
    pairs = (
        (rank_of(one), rank_of(other)),
        (leakage(first), leakage(second)),
        (price_of(one), price_of(other)),
    )
    return all(left <= right for left, right in pairs) and any(left < right for left, right in pairs)


def rank_of(judgement: Judgement) -> int:
    """Return what recommendations are ranked by first: a bound, then what was not broken, then what is reduced."""
    return 0 if judgement.is_good else 1 if judgement.verdict == "not broken" else 2


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
