"""Utility: how good a trained model is, whichever way its training measured it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import fmean

from leaktight.core.display import percent
from leaktight.core.metric import Reading
from leaktight.findings.display import title_of
from leaktight.statistics.outcomes import unpack
from leaktight.statistics.paired import Pair, paired_interval
from leaktight.statistics.pooling import minus, pool

ACCURACY = "accuracy"
UTILITIES = ("auc", ACCURACY)
"""What a training may say about how good its model is, as a share; the first that is there counts.

Where one class is rare, accuracy says
little: never naming it is nearly always right."""
_LOSS = "_loss"


def utility_of(readings: Iterable[Reading]) -> Reading | None:
    """Return the reading that says how good the trained model is.

    Args:
        readings: everything that was measured, about leakage or not.

    Example:
        >>> utility_of([Reading(name="auc", value=0.9, leaks="high"), Reading(name="auc", value=0.7)]).value
        0.7
    """
    found = {reading.name: reading for reading in readings if is_utility(reading)}
    return next((found[name] for name in UTILITIES if name in found), None)


def is_utility(reading: Reading) -> bool:
    """Return whether a reading is about how good the model is, not about what leaks.

    Example:
        >>> is_utility(Reading(name="auc", value=0.9)), is_utility(Reading(name="auc", value=0.9, leaks="high"))
        (True, False)
    """
    return reading.name in UTILITIES and reading.leaks is None and reading.layer is None


class Price(Reading):
    """How much worse a model is under a defence than without it, in shares.

    Args:
        paired: whether its interval rests on the same test rows under both models; if not, it is that of two
            independent samples, as a rule too wide.
    """

    paired: bool = False


def price_of(runs: Sequence[tuple[Reading, Reading]]) -> Price:
    """Return how much worse models are under a defence than without it, in shares: the mean over seeds.

    Where every reading says what became of the same test rows, the interval is `statistics.paired_interval`: Newcombe's
    for accuracy, DeLong's for an AUC, over seeds. Else it is that of independent samples, pooled over seeds.

    Args:
        runs: for each seed, at least one, the utility of the model trained without defence and of the one trained
            under it.

    Example:
        >>> bare = Reading(name="accuracy", value=1.0, n=8, outcomes="hits:8:/w==")
        >>> under = Reading(name="accuracy", value=0.75, n=8, outcomes="hits:8:Pw==")
        >>> price_of([(bare, under)]).paired, price_of([(bare, under.without_outcomes())]).paired
        (True, False)
    """
    losses = [minus(without, under, f"{under.name}{_LOSS}") for without, under in runs]
    pooled = pool(losses)
    pairs = _pairs(runs)
    if pairs is None:
        return Price(**dict(pooled))
    values = [loss.value for loss in losses]
    low, high = paired_interval(pairs, values)
    return Price(name=pooled.name, value=fmean(values), low=low, high=high, n=pooled.n, paired=True)


def _pairs(runs: Sequence[tuple[Reading, Reading]]) -> list[Pair] | None:
    """Return what became of the same test rows in each seed, without defence and under it.

    None if that was not kept of all.
    """
    found: list[Pair] = []
    for without, under in runs:
        one, other = unpack(without.outcomes), unpack(under.outcomes)
        if one is None or other is None or not (one.matches(other) and (not found or one.matches(found[0][0]))):
            return None
        found.append((one, other))
    return found


def utility_name(reading: Reading | None) -> str:
    """Return what a utility, or what was lost of it, is called; of nothing, what it is called most often.

    Example:
        >>> utility_name(Reading(name="auc_loss", value=0.1)), utility_name(None)
        ('test AUC', 'accuracy')
    """
    return title_of(ACCURACY if reading is None else reading.name.removesuffix(_LOSS))


def utility_text(reading: Reading) -> str:
    """Show a utility: accuracy as a percentage, an AUC by three digits, for those near 1 differ in the last.

    Example:
        >>> utility_text(Reading(name="accuracy", value=0.8)), utility_text(Reading(name="auc", value=0.9947))
        ('80 %', '0.995')
    """
    return percent(reading.value) if reading.name == ACCURACY else f"{reading.value:.3f}"


def is_ignorant(utility: Reading | None) -> bool:
    """Return whether a model was measured to be no better than one that learned nothing.

    That its interval reaches so far is not enough.

    Example:
        >>> is_ignorant(Reading(name="auc", value=0.6, low=0.4, chance=0.5))
        False
    """
    return utility is None or utility.chance is None or utility.value <= utility.chance


def no_better(*utilities: Reading | None) -> str:
    """Say that models are no better than one that learned nothing, or may not be, as the verb of a sentence.

    Example:
        >>> no_better(Reading(name="auc", value=0.6, chance=0.5))
        'may, by its interval, be no better than guessing'
    """
    verb = "is" if all(map(is_ignorant, utilities)) else "may, by its interval, be"
    return f"{verb} no better than {ignorance(utilities[0])}"


def ignorance(utility: Reading | None) -> str:
    """Say what a model does that learned nothing: what the chance level of a utility stands for.

    Example:
        >>> ignorance(Reading(name="accuracy", value=0.1)), ignorance(Reading(name="auc", value=0.5))
        ('always naming the commonest class', 'guessing')
    """
    return "always naming the commonest class" if utility is None or utility.name == ACCURACY else "guessing"
