"""Utility: how good a trained model is, whichever way its training measured it."""

from __future__ import annotations

from collections.abc import Iterable

from leaktight.audit.pool import minus
from leaktight.audit.words import percent, title_of
from leaktight.core.metric import Reading

ACCURACY = "accuracy"
UTILITIES = ("auc", ACCURACY)
"""What a training may say about how good its model is, as a share; the first that is there counts. Where one class is rare, accuracy says
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


def lost(without: Reading, under: Reading) -> Reading:
    """Return how much worse a model is under a defence than without it, in shares.

    Args:
        without: the utility of the model trained without defence.
        under: that of the model trained under it.

    Example:
        >>> lost(Reading(name="auc", value=0.75), Reading(name="auc", value=0.5))
        Reading(name='auc_loss', value=0.25, low=None, high=None, n=1, chance=None, leaks=None, against=None, layer=None, each=())
    """
    return minus(without, under, f"{under.name}{_LOSS}")


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


def ignorance(utility: Reading | None) -> str:
    """Say what a model does that learned nothing: what the chance level of a utility stands for.

    Example:
        >>> ignorance(Reading(name="accuracy", value=0.1)), ignorance(Reading(name="auc", value=0.5))
        ('always naming the commonest class', 'guessing')
    """
    return "always naming the commonest class" if utility is None or utility.name == ACCURACY else "guessing"
