"""Readings of AUC: how they are compared, though each attack and layer has a chance level of its own."""

from __future__ import annotations

from collections.abc import Sequence

from leaktight.core.metric import Reading
from leaktight.statistics.auc import GUESSING
from leaktight.statistics.pooling import low


def chance_of(reading: Reading) -> float:
    """Return what guessing gets: a half where the reading does not say.

    Example:
        >>> chance_of(Reading(name="leak_auc", value=0.6)), chance_of(Reading(name="leak_auc", value=0.6, chance=0.55))
        (0.5, 0.55)
    """
    return GUESSING if reading.chance is None else reading.chance


def excess(reading: Reading) -> float:
    r"""Return how far an AUC lies beyond chance, as a part of all there is: \((AUC - c) / (1 - c)\).

    An attack that does not know which side is positive, and a layer before the cut, have a chance level above a half,
    so AUCs by themselves do not say which attack got more out of a message.

    Example:
        >>> signed = Reading(name="leak_auc", value=0.6, chance=0.5, leaks="high")
        >>> unsigned = Reading(name="leak_auc", value=0.62, chance=0.56, leaks="high")
        >>> excess(signed) > excess(unsigned)
        True
    """
    chance = chance_of(reading)
    return (reading.value - chance) / max(1 - chance, 1e-9)


def weight(reading: Reading, tail: Reading | None = None) -> tuple[float, float, float]:
    """Return what attacks and layers are ranked by.

    One that beats chance, either way round, comes first, then one that beats it only in the worst steps, then those
    whose intervals reach down to chance.

    Args:
        reading: the AUC, of labels the median over steps.
        tail: the 95 % quantile of the same attack and layer, if it was measured.
    """
    leaks, beyond = reading.beats_chance(), excess(reading)
    if is_inverted(reading):
        leaks, beyond = True, (GUESSING - reading.value) / GUESSING
    worst = excess(tail) if tail is not None and tail.beats_chance() else 0.0
    return (beyond if leaks else 0.0), worst, beyond


def is_inverted(reading: Reading) -> bool:
    """Return whether the whole interval of an AUC lies below a half.

    Labels, or a property, are then told the other way round.

    Example:
        >>> is_inverted(Reading(name="leak_auc", value=0.1, low=0.05, high=0.2))
        True
        >>> is_inverted(Reading(name="leak_auc", value=0.1))
        False
    """
    return reading.high is not None and reading.high < GUESSING


def auc_ends(readings: Sequence[Reading]) -> tuple[float, float]:
    """Return between what an AUC is drawn: from guessing to 1, lower where readings are.

    Example:
        >>> above = Reading(name="leak_auc", value=0.6, low=0.5)
        >>> below = Reading(name="leak_auc", value=0.4, low=0.32)
        >>> auc_ends([above]), auc_ends([below])
        ((0.45, 1.03), (0.3, 1.03))
    """
    return min(0.45, *(low(reading) - 0.02 for reading in readings)), 1.03
