"""Label leaks: how readings of leak AUC are compared, though each attack and layer has a chance level of its own."""

from __future__ import annotations

from collections.abc import Iterable

from leaktight.core.metric import Reading

LEAK_AUC, TAIL = "leak_auc", "leak_auc_q95"
"""The median over training steps, and the 95 % quantile."""
GUESSING = 0.5


def tells_labels(reading: Reading | None) -> bool:
    """Return whether a reading says how well labels were told apart."""
    return reading is not None and reading.name == LEAK_AUC


def excess(reading: Reading) -> float:
    r"""Return how far an AUC lies beyond chance, as a part of all there is: \((AUC - c) / (1 - c)\).

    An attack that does not know which side is positive, and a layer before the cut, have a chance level above a half, so AUCs by themselves do
    not say which attack got more out of a message.

    Example:
        >>> signed = Reading(name="leak_auc", value=0.6, chance=0.5, leaks="high")
        >>> unsigned = Reading(name="leak_auc", value=0.62, chance=0.56, leaks="high")
        >>> excess(signed) > excess(unsigned)
        True
    """
    chance = GUESSING if reading.chance is None else reading.chance
    return (reading.value - chance) / max(1 - chance, 1e-9)


def weight(reading: Reading) -> tuple[float, float]:
    """Return what attacks and layers are ranked by: one whose interval reaches down to chance comes after all that beat it."""
    beyond = excess(reading)
    return (beyond if reading.beats_chance() else 0.0), beyond


def strongest_layer(readings: Iterable[Reading]) -> Reading | None:
    """Return the reading of the layer at which labels are told best; of equals the first, which is the cut.

    Example:
        >>> strongest_layer([]) is None
        True
    """
    return max(filter(tells_labels, readings), key=weight, default=None)


def place_of(reading: Reading) -> str:
    """Say at which layer.

    Example:
        >>> place_of(Reading(name="leak_auc", value=0.5)), place_of(Reading(name="leak_auc", value=0.5, layer="linear1"))
        ('at the cut', 'at the layer linear1')
    """
    return "at the cut" if reading.layer is None else f"at the layer {reading.layer}"
