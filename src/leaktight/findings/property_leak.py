"""Property leaks: how readings of property AUC are compared, and what they are about, in words."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import NormalDist
from typing import Any

from leaktight.core.metric import Reading
from leaktight.core.scenario import Scenario
from leaktight.statistics.pooling import leaks_more, low

PROPERTY_AUC = "property_auc"
GUESSING = 0.5
UNNAMED = "have the private property"
_NORMAL = NormalDist()


def tells_property(reading: Reading | None) -> bool:
    """Return whether a reading says how well a private property was told."""
    return reading is not None and reading.name == PROPERTY_AUC


def strongest_property(readings: Iterable[Reading]) -> Reading | None:
    """Return what an attack on a property is judged by: all layers together, unless a single layer surely tells more.

    No attacker knows which of the layers will tell most, so the largest of their AUCs is not what it gets. A layer takes the place of all
    together if its interval lies above theirs, or if it beats chance where they do not, by an interval that is wider the more
    layers were tried. Where all together were not tried, the layer that tells most counts.

    Example:
        >>> whole = Reading(name="property_auc", value=0.7, low=0.6, high=0.8, chance=0.5, leaks="high")
        >>> layer = whole.model_copy(update={"value": 0.75, "low": 0.65, "high": 0.85, "layer": "head"})
        >>> strongest_property([whole, layer]) is whole
        True
        >>> strongest_property([whole, layer.model_copy(update={"low": 0.81})]).layer
        'head'
    """
    found = [reading for reading in readings if tells_property(reading)]
    whole = next((reading for reading in found if reading.layer is None), None)
    single = [reading for reading in found if reading.layer is not None]
    if whole is None:
        return max(single, key=lambda reading: (reading.beats_chance(), reading.value), default=None)
    more = [
        one for one in single if leaks_more(one, whole) or (not whole.beats_chance() and beats_chance_among(one, len(single)))
    ]
    return max(more, key=lambda reading: reading.value, default=whole)


def beats_chance_among(reading: Reading, tried: int) -> bool:
    """Return whether an AUC beats chance, though it is the largest of several that were tried: by Bonferroni's wider interval.

    Example:
        >>> reading = Reading(name="property_auc", value=0.7, low=0.55, high=0.85, chance=0.5, leaks="high")
        >>> beats_chance_among(reading, 1), beats_chance_among(reading, 20)
        (True, False)
    """
    wider = _NORMAL.inv_cdf(1 - 0.025 / max(tried, 1)) / _NORMAL.inv_cdf(0.975)
    chance = GUESSING if reading.chance is None else reading.chance
    return reading.beats_chance() and reading.value - wider * (reading.value - low(reading)) > chance


def asked_of(scenario: Scenario) -> str:
    """Say what an attack on the property asks of the examples, as far as the settings of the data tell; nothing is loaded.

    Example:
        >>> from leaktight.data import Parity
        >>> from leaktight.learning import Federated
        >>> from leaktight.models import MLP
        >>> asked_of(Federated(data=Parity(), model=MLP()))
        'have the private property'
    """
    data = scenario.to_dict().get("data")
    return _asked(data) if isinstance(data, dict) else UNNAMED


def of_class(scenario: Scenario) -> bool:
    """Return whether a class stands in the place of the property, so that what is told of it is told of labels."""
    data = scenario.to_dict().get("data")
    return isinstance(data, dict) and data.get("kind") == "class_property"


def _asked(data: dict[str, Any]) -> str:
    if data.get("kind") == "class_property":
        return "are of the commonest class" if data.get("label") is None else f"are of class {data['label']}"
    named = data.get("private_property")
    name = " or ".join(map(str, named)) if isinstance(named, list) else named
    if not isinstance(name, str) or not name:
        return UNNAMED
    positive = data.get("private_property_positive")
    return f"have the property `{name}: {positive}`" if positive else f"have the property `{name}`"


def whence(reading: Reading) -> str:
    """Say which layers an AUC comes from.

    Example:
        >>> whence(Reading(name="property_auc", value=0.5)), whence(Reading(name="property_auc", value=0.5, layer="head"))
        ('all layers together', 'the layer head alone')
    """
    if reading.layer is None:
        return "all layers together"
    return f"the layers {reading.layer}" if " + " in reading.layer else f"the layer {reading.layer} alone"
