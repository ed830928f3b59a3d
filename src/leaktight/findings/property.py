"""Property: whether the examples behind a message have something in common that nobody was to know."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from statistics import NormalDist
from typing import ClassVar, Literal

from leaktight.core.metric import Reading
from leaktight.core.record import Record
from leaktight.findings.auc import auc_ends, chance_of, is_inverted, weight
from leaktight.findings.column import NOTHING, Column, chance, interval, result
from leaktight.findings.display import title_of
from leaktight.findings.kind import Axis, LeakKind, Severity, is_beyond
from leaktight.findings.layer_measure import UNNAMED, LayerMeasure, asks_class, question_of
from leaktight.findings.rows import Row
from leaktight.findings.threats import name_of_seat
from leaktight.metrics.property_auc import PROPERTY_AUC
from leaktight.statistics.pooling import leaks_more, low

JOINED = " + "
"""What stands between the names of layers that were taken together."""
_NORMAL = NormalDist()


class Property(LeakKind):
    """A private property of the examples behind a message, by the AUC with which it is told."""

    kind: Literal["property"] = "property"
    rank: ClassVar[int] = 30
    heading: ClassVar[str] = "Private property"
    noun: ClassVar[str] = "the private property"
    names: ClassVar[tuple[str, ...]] = (PROPERTY_AUC,)
    chart: ClassVar[str] = "property AUC"
    layer: ClassVar[LayerMeasure | None] = LayerMeasure(
        reading=PROPERTY_AUC,
        order=0,
        risk="property",
        noun="the property",
        head="property AUC",
        column="property AUC",
        question=UNNAMED,
        question_in=lambda scenario, names: "" if asks_class(scenario) else question_of(scenario, names),
        measured=PROPERTY_AUC,
        word="property",
        information="v_information",
        of_property=True,
    )

    def reading(self, row: Row) -> Reading | None:
        """Return the AUC of the whole message, unless a single layer surely tells more."""
        return strongest_property(row.readings)

    def severity(self, row: Row) -> Severity:
        """Rank attacks by what they tell beyond chance."""
        reading = self.reading(row)
        return () if reading is None else weight(reading)

    def is_read(self, row: Row, width: float = 1.0) -> bool:
        """Return whether the property is told beyond chance, either way round."""
        reading = self.reading(row)
        return reading is not None and (is_beyond(reading, width) or is_inverted(reading))

    def amount(self, row: Row) -> float:
        """Return what is told beyond chance, either way round."""
        reading = self.reading(row)
        return 0.0 if reading is None else weight(reading)[0]

    def clause(self, row: Row) -> str:
        """Say who tells what, and how well."""
        reading = self.reading(row)
        if reading is None:
            return "nothing was measured"
        ends = "" if reading.low is None or reading.high is None else f"{reading.low:.2f} to {reading.high:.2f}; "
        chance = chance_of(reading)
        other_way = f", as good as {1 - reading.value:.2f} the other way round" if is_inverted(reading) else ""
        return (
            f"from one shared message {name_of_seat(row.seat)} tells whether its examples "
            f"{question_of(row.measured_in, row.class_names)} with AUC {reading.value:.2f} "
            f"({ends}guessing gets {chance:.2g}){other_way}"
        )

    def headline(self, row: Row) -> str:
        """Say how well it is told, and no more."""
        reading = self.reading(row)
        if reading is None:
            return self.clause(row)
        value = 1 - reading.value if is_inverted(reading) else reading.value
        chance = chance_of(reading)
        question = question_of(row.measured_in, row.class_names)
        return f"one message tells whether its examples {question} with AUC {value:.2f} (guessing gets {chance:.2f})"

    def short(self, row: Row) -> str:
        """Return the AUC."""
        reading = self.reading(row)
        return "nothing" if reading is None else f"{reading.value:.2f}"

    def measure(self, row: Row) -> str:
        """Say what is told."""
        return f"AUC, how well it is told whether examples {question_of(row.measured_in, row.class_names)}"

    def say_reading(self, row: Row) -> str:
        """Name it after the labels where a class stands in the place of the property."""
        said = super().say_reading(row)
        about_class = row.measured_in is not None and asks_class(row.measured_in)
        return said.replace("property AUC", "label AUC") if about_class else said

    def detail(self, row: Row) -> str:
        """Name the attack, the layers and the setting.

        Also name a single layer if its AUC is larger than what the row is judged by.
        """
        reading = self.reading(row)
        if reading is None:
            return super().detail(row)
        best = _best_layer(row)
        alone = [] if best is None or best.value <= reading.value else [f"{best.layer} alone {best.value:.2f}"]
        return "; ".join([f"{row.attack} on {whence(reading)}", *alone, row.moment])

    def columns(self) -> tuple[Column, ...]:
        """Return how well the property is told by what the row is judged by, and by the best layer alone."""
        return (
            Column("Property AUC (95 %)", lambda row: result(row, self.leading_reading(row))),
            Column("Chance", lambda row: chance(self.leading_reading(row))),
            Column(
                "Layer that tells most",
                lambda row: f"{best.layer} {best.value:.2f}" if (best := _best_layer(row)) else NOTHING,
            ),
        )

    def numbers(self, rows: Sequence[Row]) -> tuple[Column, ...]:
        """Return the AUC of the whole message; where a class stands in the place of the property, that of labels."""

        def show_auc(row: Row, about_labels: bool) -> str:
            asks = row.measured_in is not None and asks_class(row.measured_in)
            return interval(row.reading(PROPERTY_AUC), 2) if asks is about_labels else NOTHING

        return (
            Column("property AUC", lambda row: show_auc(row, False), (PROPERTY_AUC,)),
            Column("label AUC", lambda row: show_auc(row, True), (PROPERTY_AUC,)),
        )

    def glossary(self, names: Collection[str], records: Sequence[Record]) -> dict[str, str]:
        """Explain how well a property is told."""
        if PROPERTY_AUC not in names:
            return {}
        return {
            "Property AUC": "How likely the attacker gives a message whose examples have the private property a higher "
            "probability than one whose examples have not: 1 is without a mistake, 0.5 is guessing. Of one layer, when "
            "its tensors alone are used. It is that of one message; who sees many of one participant and adds up sees "
            "more."
        }

    def tradeoff_axis(self, readings: Sequence[Reading]) -> Axis:
        """Draw an AUC from guessing to 1."""
        return self.strength_axis(readings)

    def strength_axis(self, readings: Sequence[Reading]) -> Axis:
        """Draw an AUC from guessing to 1."""
        return super().strength_axis(readings)._replace(ends=auc_ends(readings))

    def hover(self, row: Row) -> tuple[str, ...]:
        """Say how well the property is told, and by which layers."""
        reading = self.reading(row)
        return () if reading is None else (f"{title_of(reading.name)}: {reading.value:.3f}, {whence(reading)}",)


def _best_layer(row: Row) -> Reading | None:
    """Return the AUC of the single layer that tells most."""
    single = (reading for reading in row.readings if tells_property(reading) and is_single(reading))
    return max(single, key=lambda reading: reading.value, default=None)


def is_single(reading: Reading) -> bool:
    """Return whether an AUC is of one layer by itself."""
    return reading.layer is not None and JOINED not in reading.layer


def tells_property(reading: Reading | None) -> bool:
    """Return whether a reading says how well a private property was told."""
    return reading is not None and reading.name == PROPERTY_AUC


def strongest_property(readings: Iterable[Reading]) -> Reading | None:
    """Return what an attack on a property is judged by: the whole message, unless a single layer surely tells more.

    No attacker knows which of the layers will tell most, so the largest of their AUCs is not what it gets. An attack on
    each layer makes of a whole message what told most of gradients of its own. A layer takes its place if its interval
    lies above that, or if it beats chance where that does not, by an interval that is wider the more layers were tried.
    Where the whole was not tried, the layer that tells most counts.

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
    single = [reading for reading in found if is_single(reading)]
    if whole is None:
        return max(found, key=lambda reading: (reading.beats_chance(), reading.value), default=None)
    more = [
        one
        for one in single
        if leaks_more(one, whole) or (not whole.beats_chance() and beats_chance_among(one, len(single)))
    ]
    return max(more, key=lambda reading: reading.value, default=whole)


def beats_chance_among(reading: Reading, tried: int) -> bool:
    """Return whether an AUC beats chance, though it is the largest of several that were tried.

    Bonferroni's wider interval decides.

    Example:
        >>> reading = Reading(name="property_auc", value=0.7, low=0.55, high=0.85, chance=0.5, leaks="high")
        >>> beats_chance_among(reading, 1), beats_chance_among(reading, 20)
        (True, False)
    """
    wider = _NORMAL.inv_cdf(1 - 0.025 / max(tried, 1)) / _NORMAL.inv_cdf(0.975)
    chance = chance_of(reading)
    return reading.beats_chance() and reading.value - wider * (reading.value - low(reading)) > chance


def whence(reading: Reading) -> str:
    """Say which layers an AUC comes from.

    Example:
        >>> whence(Reading(name=PROPERTY_AUC, value=0.5)), whence(Reading(name=PROPERTY_AUC, value=0.5, layer="head"))
        ('the whole message', 'the layer head alone')
    """
    if reading.layer is None:
        return "the whole message"
    return f"the layers {reading.layer}" if JOINED in reading.layer else f"the layer {reading.layer} alone"
