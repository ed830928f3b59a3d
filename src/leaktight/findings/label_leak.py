"""Label leaks: which readings of leak AUC count, at which layer and beside which others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from leaktight.core.metric import Reading
from leaktight.findings.auc import chance_of, weight

LEAK_AUC, TAIL, PASSES = "leak_auc", "leak_auc_q95", "leak_auc_passes"
"""The median over training steps and the 95 % quantile, of single messages; and the AUC over all passes.

For the last, the scores of all passes are added up.
"""
FEATURES, THEORY, CEILING = "leak_auc_features", "leak_auc_theory", "leak_auc_ceiling"
"""Beside them: what the attacker's own features give, what theory predicts, and what the defence's bound allows."""


def tells_labels(reading: Reading | None) -> bool:
    """Return whether a reading says how well labels were told apart."""
    return reading is not None and reading.name in (LEAK_AUC, PASSES)


def tail_of(readings: Iterable[Reading], layer: str | None) -> Reading | None:
    """Return the 95 % quantile over steps at a layer; None if it was not measured.

    Example:
        >>> tail_of([Reading(name="leak_auc_q95", value=0.7, layer="relu1")], "relu1").value
        0.7
    """
    return next((reading for reading in readings if reading.name == TAIL and reading.layer == layer), None)


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
        if one.name == FEATURES and one.layer == reading.layer and (one.low is None or one.low > chance_of(one))
    ]
    level = max([chance_of(reading), *levels])
    return reading.model_copy(update={"chance": level}) if levels else reading


def place_of(reading: Reading) -> str:
    """Say at which layer.

    Example:
        >>> place_of(Reading(name=LEAK_AUC, value=0.5)), place_of(Reading(name=LEAK_AUC, value=0.5, layer="linear1"))
        ('at the cut', 'at the layer linear1')
    """
    return "at the cut" if reading.layer is None else f"at the layer {reading.layer}"
