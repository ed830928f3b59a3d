"""Layer risk: what each layer of a model gives away, and which layer gives most by itself.

It also says whether cheap measures point at the same layers.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence

from scipy.stats import pearsonr

from leaktight.core.metric import Reading
from leaktight.core.record import Record, Status
from leaktight.core.scenario import Scenario
from leaktight.findings.kind import layer_measures
from leaktight.findings.layer_measure import ASKED, BYTES, COUNT, REMAINING, LayerMeasure
from leaktight.findings.rows import Row, rows_of
from leaktight.findings.utility import is_utility
from leaktight.statistics.pooling import high, leakage, low

MUTUAL_INFORMATION = "mutual_information_upper"
SENSITIVITIES, ASKED_SENSITIVITIES = (
    tuple(f"{what}sensitivity_{norm}" for norm in ("f", "1", "inf")) for what in ("", "property_")
)
"""The sensitivity of whole gradients, and that of what is asked alone."""
MEASURES = (*ASKED, "sensitivity_", "mutual_information_")
"""How the names of readings begin that say of a layer what it gives away, without naming an attack."""
LEAST_LAYERS = 4
"""Over fewer layers any two numbers seem to go together."""
BEHIND = "_behind"
"""How the name of a reading ends that says how far a layer lies behind the one that tells most, in a paired test."""
_JOINED = " + "


@dataclasses.dataclass(frozen=True)
class LayerRow:
    """What was measured of one layer.

    Args:
        layer: its name, as in messages.
        readings: by name; `psnr` is what inverting this layer alone gives. Where several measures share a reading, the
            names tell them apart: `property_auc` and `label_auc`, `v_information` and `label_v_information`.
    """

    layer: str
    readings: Mapping[str, Reading]

    def value(self, name: str) -> float | None:
        """Return the value of a reading; None if there is none."""
        return self.readings[name].value if name in self.readings else None


@dataclasses.dataclass(frozen=True)
class LayerCorrelation:
    """Whether a measure that needs no attack and what an attack gets go together over layers.

    Args:
        metric: the measure.
        attack: the reading of the attack.
        r: Pearson's coefficient; None over fewer than `LEAST_LAYERS` layers, or where either does not vary.
        p: how likely a coefficient at least as far from 0 is if they have nothing to do with each other; None as above.
        n: over how many layers.
    """

    metric: str
    attack: str
    r: float | None
    p: float | None
    n: int


@dataclasses.dataclass(frozen=True)
class Profile:
    """What was measured of the layers in one setting under one defence.

    Args:
        place: a row of that setting: it tells the scenario and the defence.
        layers: in the order of the network.
        together: what was measured of all layers together, by the same names.
    """

    place: Row
    layers: tuple[LayerRow, ...]
    together: Mapping[str, Reading]

    @property
    def question(self) -> str:
        """What an attack on a layer asks of the examples, in words; empty where nobody knows more than the measure."""
        scenario = self.place.measured_in
        measure = None if scenario is None else measure_in(scenario)
        return "" if scenario is None or measure is None else measure.question_in(scenario, self.place.class_names)


def measure_in(scenario: Scenario) -> LayerMeasure | None:
    """Return the measure of what attacks ask of the examples of a scenario; None if they ask nothing."""
    return next((measure for measure in layer_measures() if measure.question_in(scenario, ())), None)


def question_in(scenario: Scenario) -> str:
    """Say what attacks ask of the examples of a scenario, in words; nothing if they ask nothing."""
    return next(filter(None, (measure.question_in(scenario, ()) for measure in layer_measures())), "")


def first_question(records: Iterable[Record]) -> str:
    """Say what attacks on layers ask of the examples first of all; nothing where they ask nothing."""
    scenarios = [record.cell.scenario for record in records if record.cell.purpose == "measure"]
    questions = (measure.question_in(scenario, ()) for measure in layer_measures() for scenario in scenarios)
    return next(filter(None, questions), "")


def of_layers(name: str) -> bool:
    """Return whether readings of this name say what layers give away.

    Those of an attack that inverts do if they are of one layer.

    Example:
        >>> of_layers("property_auc"), of_layers("v_information_share"), of_layers("leak_auc")
        (True, True, False)
    """
    asking = [measure for measure in layer_measures() if measure.question]
    return name.startswith(MEASURES) or any(
        name in (one, f"{one}{BEHIND}") for one in (measure.measured or measure.reading for measure in asking)
    )


def profiles_of(records: Sequence[Record], rows: Sequence[Row]) -> list[Profile]:
    """Return a profile for each scenario, setting and defence in which layers were measured, undefended first.

    Args:
        records: what was measured.
        rows: the same as rows (`rows_of`), in their order.
    """
    by_key = {record.cell.key: record for record in records}
    groups: dict[tuple[int, int, str, str], list[Row]] = {}
    for row in rows:
        if row.layer or any(r.layer is not None and of_layers(r.name) for r in row.readings):
            groups.setdefault((row.scenario, row.batch_size, row.stage, row.defence.key), []).append(row)
    found = []
    for group in groups.values():
        own = [by_key[key] for row in group for key in row.cells if key in by_key]
        layers, measure = layer_rows(own), measure_in(own[0].cell.scenario) if own else None
        # To have inverted one layer, of which nothing else is known, says nothing about layers.
        if len(layers) > 1 or (layers and any(of_layers(name) for name in layers[0].readings)):
            whole = [r for row in group for r in row.readings if r.layer is None and of_layers(r.name)]
            together = {_rename(r.name, measure): r for r in sorted(whole, key=leakage)}
            found.append(Profile(group[0], tuple(layers), together))
    return found


def of_layers_alone(row: Row) -> bool:
    """Return whether nothing came of a row but what layers give away without an attack, and how good the model is."""
    about = [reading for reading in row.readings if not is_utility(reading)]
    return (
        set(row.counts) == {Status.DONE} and bool(about) and all(reading.name.startswith(MEASURES) for reading in about)
    )


def layer_rows(records: Sequence[Record]) -> list[LayerRow]:
    """Return what was measured of each layer, over all seeds, in the order of the network.

    Readings of several attacks or settings are not mixed: that which leaks most at any layer comes first, others only
    fill its gaps.

    Args:
        records: those of one defence; of one scenario, or of several that look at the same model.

    Example:
        >>> layer_rows([])
        []
    """
    records = [record for record in records if record.status is Status.DONE and record.cell.purpose == "measure"]
    measures = {record.cell.key: measure_in(record.cell.scenario) for record in records}
    alone = {measure.reading for measure in layer_measures() if not measure.question}
    profiles: dict[str, list[dict[str, Reading]]] = {}
    for row in rows_of(records):
        measure = measures[row.cells[0]]
        others = {r.name for record in records if measures[record.cell.key] != measure for r in record.readings}
        for name, profile in _profiles(row, measure).items():
            # What two training runs have in common by name is kept apart.
            shared = measure is not None and name in others and name not in alone
            profiles.setdefault(f"{measure.prefix}{name}" if measure and shared else name, []).append(profile)
    found: dict[str, dict[str, Reading]] = {layer: {} for layer in _order(records)}
    for name, several in profiles.items():
        for profile in sorted(several, key=lambda one: max(map(leakage, one.values())), reverse=True):
            for layer, reading in profile.items():
                found[layer].setdefault(name, reading)
    return [LayerRow(layer, readings) for layer, readings in found.items() if readings]


def _profiles(row: Row, asked: LayerMeasure | None) -> dict[str, dict[str, Reading]]:
    """Return by name, then by layer, what one row says of layers."""
    found: dict[str, dict[str, Reading]] = {}
    for reading in row.readings:
        if reading.layer is not None and of_layers(reading.name) and _JOINED not in reading.layer:
            found.setdefault(_rename(reading.name, asked), {})[reading.layer] = reading
    for measure in layer_measures():
        inverted = row.reading(measure.reading, "raw") if row.layer and not measure.question else None
        if inverted is not None:
            found[measure.reading] = {row.layer: inverted}
    return found


def _rename(name: str, measure: LayerMeasure | None) -> str:
    return name if measure is None else measure.rename(name)


def _order(records: Iterable[Record]) -> list[str]:
    """Return the layers in the order of the readings.

    Those of a record with more layers come first, because it tells the order of more.
    """
    rows = {record.cell.key: row for record in records for row in rows_of([record])}
    layers = [
        list(dict.fromkeys(layer for profile in _profiles(row, None).values() for layer in profile))
        for row in rows.values()
    ]
    return list(dict.fromkeys(layer for some in sorted(layers, key=len, reverse=True) for layer in some))


def rankings(rows: Sequence[LayerRow]) -> dict[str, list[str]]:
    """Return the layers in the order in which to protect them, by each risk that was measured.

    That is the order in which layers were sealed where it was measured what remains (`RemainingLeak`). Else what each
    layer tells alone stands in for it: the AUC of the attack, then V-information; for `reconstruction` PSNR.
    Sensitivity ranks nothing.

    Example:
        >>> def row(layer, **values):
        ...     return LayerRow(layer, {name: Reading(name=name, value=value) for name, value in values.items()})
        >>> rankings([row("conv1", property_auc=0.6), row("head", property_auc=0.9), row("conv2", v_information=0.1)])
        {'property': ['head', 'conv1', 'conv2']}
    """
    found = {}
    for measure in layer_measures():
        steps = sealings(rows, measure)
        ranked = [step.layer for step in steps] or [row.layer for row in _rank(rows, measure.ranks)]
        if ranked:
            found[measure.risk] = ranked
    return found


@dataclasses.dataclass(frozen=True)
class SealedStep:
    """What is told once a layer and those before it are sealed.

    Args:
        layer: the layer that is sealed last.
        count: how many are.
        bytes: how many bytes of parameters they have.
        remaining: the AUC of an attack on all others.
    """

    layer: str
    count: int
    bytes: int
    remaining: Reading


def sealings(rows: Sequence[LayerRow], measure: LayerMeasure) -> list[SealedStep]:
    """Return what remains of a risk layer by layer, in the order in which they were sealed; empty if nobody asked.

    Training runs that rank layers differently have no order in common, and so none is given.

    Example:
        >>> readings = {"remaining_auc": 0.5, "sealed_layers": 1, "sealed_bytes": 60}
        >>> row = LayerRow("head", {name: Reading(name=name, value=value) for name, value in readings.items()})
        >>> [(step.layer, step.count, step.remaining.value) for step in sealings([row], layer_measures()[0])]
        [('head', 1, 0.5)]
    """
    names = [measure.reading_name(name) for name in (REMAINING, COUNT, BYTES)]
    steps = [
        SealedStep(row.layer, round(row.readings[names[1]].value), round(row.readings[names[2]].value), remaining)
        for row in rows
        if all(name in row.readings for name in names) and (remaining := row.readings[names[0]])
    ]
    steps.sort(key=lambda step: step.count)
    if not measure.question:
        return []
    return steps if [step.count for step in steps] == list(range(1, len(steps) + 1)) else []


def sealing_measure(rows: Sequence[LayerRow]) -> LayerMeasure | None:
    """Return the first risk of which it was measured what remains; None if there is none."""
    return next((measure for measure in layer_measures() if sealings(rows, measure)), None)


def _rank(rows: Sequence[LayerRow], names: Sequence[str]) -> list[LayerRow]:
    """Return the rows that have any of these readings, by the first that they have, the largest first."""

    def key(row: LayerRow) -> tuple[float, ...]:
        return tuple(-math.inf if (value := row.value(name)) is None else value for name in names)

    return sorted((row for row in rows if any(name in row.readings for name in names)), key=key, reverse=True)


def correlations(rows: Sequence[LayerRow]) -> list[LayerCorrelation]:
    """Return how V-information, sensitivity and mutual information go together with the AUC of attacks, over layers.

    Example:
        >>> correlations([])
        []
    """
    asking = [measure for measure in layer_measures() if measure.question]
    found = []
    for metric, attack in [(name, measure.reading) for measure in asking for name in _beside(measure, rows)]:
        both = [(x, y) for row in rows if (x := row.value(metric)) is not None and (y := row.value(attack)) is not None]
        if both:
            found.append(LayerCorrelation(metric, attack, *_pearson(*zip(*both, strict=True)), len(both)))
    return found


def _beside(measure: LayerMeasure, rows: Sequence[LayerRow]) -> list[str]:
    """Return the readings without an attack that may go together with what is asked."""
    whole = (*SENSITIVITIES, MUTUAL_INFORMATION)
    # Those of the training in which it was asked, if another one is beside it.
    apart = any(f"{measure.prefix}{name}" in row.readings for row in rows for name in whole)
    own = [f"{measure.prefix}{name}" if apart else name for name in whole]
    return [measure.information, *own, *(ASKED_SENSITIVITIES if measure.of_property else ())]


def _pearson(one: Sequence[float], other: Sequence[float]) -> tuple[float | None, float | None]:
    # Of numbers that differ by rounding alone a coefficient says nothing, and scipy warns.
    flat = any(max(values) - min(values) <= 1e-9 * max(map(abs, values)) for values in (one, other))
    if len(one) < LEAST_LAYERS or flat:
        return None, None
    result = pearsonr(one, other)
    return float(result.statistic), float(result.pvalue)


def riskiest(rows: Sequence[LayerRow], name: str) -> list[LayerRow]:
    """Return the layer with the largest reading of a name, and with it every layer that does not surely tell less.

    That is decided by a paired test on the same messages where there is one, else by intervals that overlap. If the
    largest beats chance, so must the others: an interval that is wide enough overlaps with anything.
    """
    ranked = _rank(rows, (name,))
    if not ranked:
        return []
    top = ranked[0].readings[name]
    if is_paired(rows, name):
        near = [row for row in ranked if row is ranked[0] or low(row.readings[f"{name}{BEHIND}"]) <= 0]
        return [row for row in near if row.readings[name].beats_chance()] if top.beats_chance() else near
    near = [row for row in ranked if row is ranked[0] or high(row.readings[name]) >= low(top)]
    return [row for row in near if row.readings[name].beats_chance()] if top.beats_chance() else near


def is_paired(rows: Sequence[LayerRow], name: str) -> bool:
    """Return whether every layer but the one with the largest reading was compared with it on the same messages."""
    ranked = _rank(rows, (name,))
    return len(ranked) > 1 and all(f"{name}{BEHIND}" in row.readings for row in ranked[1:])
