"""Label leaks: how readings of leak AUC are compared, though each attack and layer has a chance level of its own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from leaktight.core.metric import Reading
from leaktight.statistics.pooling import low

LEAK_AUC, TAIL, PASSES = "leak_auc", "leak_auc_q95", "leak_auc_passes"
"""The median over training steps and the 95 % quantile, of single messages; and the AUC over all passes.

For the last, the scores of all passes are added up.
"""
FEATURES, THEORY, CEILING = "leak_auc_features", "leak_auc_theory", "leak_auc_ceiling"
"""Beside them: what the attacker's own features give, what theory predicts, and what the defence's bound allows."""
GUESSING = 0.5


def tells_labels(reading: Reading | None) -> bool:
    """Return whether a reading says how well labels were told apart."""
    return reading is not None and reading.name in (LEAK_AUC, PASSES)


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
    chance = GUESSING if reading.chance is None else reading.chance
    return (reading.value - chance) / max(1 - chance, 1e-9)


def weight(reading: Reading, tail: Reading | None = None) -> tuple[float, float, float]:
    """Return what attacks and layers are ranked by.

    One that tells labels in the median step, either way round, comes first, then one that tells them only in the worst
    steps, then those whose intervals reach down to chance.

    Args:
        reading: the median over steps.
        tail: the 95 % quantile of the same attack and layer, if it was measured.
    """
    leaks, beyond = reading.beats_chance(), excess(reading)
    if is_inverted(reading):
        leaks, beyond = True, (GUESSING - reading.value) / GUESSING
    worst = excess(tail) if tail is not None and tail.beats_chance() else 0.0
    return (beyond if leaks else 0.0), worst, beyond


def tail_of(readings: Iterable[Reading], layer: str | None) -> Reading | None:
    """Return the 95 % quantile over steps at a layer; None if it was not measured.

    Example:
        >>> tail_of([Reading(name="leak_auc_q95", value=0.7, layer="relu1")], "relu1").value
        0.7
    """
    return next((reading for reading in readings if reading.name == TAIL and reading.layer == layer), None)


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


def strongest_layer(readings: Sequence[Reading]) -> Reading | None:
    """Return the reading of the layer at which labels are told best; of equals the first, which is the cut.

    Scores that were added up over passes count before those of single messages. Nobody needs a message for what the
    attacker's own features tell, so that the chance level is at least that.

    Example:
        >>> strongest_layer([]) is None
        True
        >>> once = Reading(name=LEAK_AUC, value=0.6, chance=0.5)
        >>> added = Reading(name=PASSES, value=0.9, chance=0.5)
        >>> strongest_layer([once, added, Reading(name=FEATURES, value=0.7)]).chance
        0.7
    """
    found = [reading for reading in readings if tells_labels(reading)]
    added = [reading for reading in found if reading.name == PASSES]
    return max(
        (beside_features(reading, readings) for reading in added or found),
        key=lambda reading: weight(reading, tail_of(readings, reading.layer)),
        default=None,
    )


def beside_features(reading: Reading, readings: Iterable[Reading]) -> Reading:
    """Return a reading whose chance level is at least what the attacker's own features tell at that layer.

    If they tell nothing, return the reading as it is.
    """
    levels = [
        one.value
        for one in readings
        if one.name == FEATURES
        and one.layer == reading.layer
        and (one.low is None or one.low > (one.chance or GUESSING))
    ]
    level = max([GUESSING if reading.chance is None else reading.chance, *levels])
    return reading.model_copy(update={"chance": level}) if levels else reading


def place_of(reading: Reading) -> str:
    """Say at which layer.

    Example:
        >>> place_of(Reading(name=LEAK_AUC, value=0.5)), place_of(Reading(name=LEAK_AUC, value=0.5, layer="linear1"))
        ('at the cut', 'at the layer linear1')
    """
    return "at the cut" if reading.layer is None else f"at the layer {reading.layer}"
