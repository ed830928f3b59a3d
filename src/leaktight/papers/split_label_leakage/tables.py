"""Tables: the paper's figures in numbers, from the records of our audits."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, median

from leaktight.core.metric import Reading
from leaktight.core.record import Record
from leaktight.learning.split import Split
from leaktight.papers.reproduction import Row, Tables, over_seeds
from leaktight.papers.split_label_leakage.equal_leak import ATTACKS, STRONGEST, TAIL, equal_leak_rows, leaks
from leaktight.papers.split_label_leakage.measured import Measured, differences
from leaktight.papers.split_label_leakage.mechanisms import BASELINE, MAX_NORM, NONE, NORM, PROTECTED, defences, sumkl
from leaktight.papers.split_label_leakage.plans import CLASSES, LOOKS
from leaktight.probes.class_gradients import CLASSES as LABELS
from leaktight.probes.class_gradients import MEASURES

CUT, FIRST = "cut", "first"
LAYERS = {CUT: None, FIRST: "relu1"}
"""The paper's layers 4 and 1, as our readings name them."""
FIFTHS = 5


def tables_of(measured: Sequence[Measured]) -> Tables:
    """Return every table."""
    makers = {
        "moments": _moments,
        "distributions": _distributions,
        "training": _trainings,
        "attacks": _attacks,
        "layers": _layers,
        "trade_off": _trade_offs,
        "equal_leak": equal_leak_rows,
        "steps": _steps,
    }
    return {name: [row for one in measured for row in make(one)] for name, make in makers.items()}


def _moments(measured: Measured) -> list[Row]:
    """Return the leak AUC of the norm attack at the moments of Fig. 1, without protection and with it."""
    return [
        {
            "data_set": measured.study.name,
            "defence": name,
            "moment": look,
            "step": look * measured.study.pause,
            "leak_auc": _at(records.get(NORM), "leak_auc", look),
        }
        for name, records in _looked(measured).items()
        for look in range(1, LOOKS + 1)
    ]


def _distributions(measured: Measured) -> list[Row]:
    """Return quantiles over the examples of each class at those moments: norms, cosines, and the norm's two factors (Fig. 1)."""
    return [
        {
            "data_set": measured.study.name,
            "defence": name,
            "moment": look,
            "label": label,
            **{
                f"{measure}_q{share}": _at(records.get(CLASSES), f"{measure}_{label}_q{share}", look)
                for measure in MEASURES
                for share in (5, 50, 95)
            },
        }
        for name, records in _looked(measured).items()
        for look in range(1, LOOKS + 1)
        for label in LABELS
    ]


def _looked(measured: Measured) -> dict[str, dict[str, Record]]:
    """Return the records behind Fig. 1 by defence and probe."""
    shown = defences(measured.study.bounds, ())
    return {
        name: {record.cell.label: record for record in measured.distributions if record.cell.defence == shown[name]}
        for name in (NONE, PROTECTED)
    }


def _at(record: Record | None, name: str, look: int) -> float | None:
    """Return a reading's value at a look; None if it is not there, or if a look without both classes was left out."""
    found = record.reading(name) if record else None
    return found.each[look] if found and len(found.each) == LOOKS + 1 else None


def _trainings(measured: Measured) -> list[Row]:
    """Return the leak AUC of the norm attack over training, at the cut and at the first layer (Fig. 2a, 2b)."""
    names = (NONE, *(sumkl(bound) for bound in measured.study.bounds))
    return [_training(measured, layer, name) for layer in LAYERS for name in names]


def _training(measured: Measured, layer: str, name: str) -> Row:
    where = LAYERS[layer]
    readings = list(measured.readings(name, NORM, "leak_auc", where).values())
    row: Row = {"data_set": measured.study.name, "layer": layer, "defence": name}
    row |= over_seeds("leak_auc", [one.value for one in readings])
    row |= over_seeds("leak_auc_q95", measured.values(name, NORM, TAIL, where).values())
    row["chance"] = _chance(measured, name, NORM, where)
    for fifth in range(FIFTHS):
        values = [part for one in readings if (part := _part(one, fifth)) is not None]
        row[f"fifth_{fifth + 1}"] = fmean(values) if values else None
    row |= over_seeds("test_auc", measured.utility(name).values())
    return row


def _part(reading: Reading, fifth: int) -> float | None:
    """Return the median of one fifth of the steps that were looked at."""
    start, end = (at * len(reading.each) // FIFTHS for at in (fifth, fifth + 1))
    return median(reading.each[start:end]) if end > start else None


def _attacks(measured: Measured) -> list[Row]:
    """Return what each attack makes of each defence at the cut."""
    return [
        {
            "data_set": measured.study.name,
            "attack": attack,
            "defence": name,
            **over_seeds("leak_auc", measured.values(name, attack, "leak_auc").values()),
            **over_seeds("leak_auc_q95", measured.values(name, attack, TAIL).values()),
            "chance": _chance(measured, name, attack),
        }
        for attack in ATTACKS
        for name in measured.defences
    ]


def _chance(measured: Measured, name: str, attack: str, layer: str | None = None) -> float | None:
    """Return what the 95 % quantile would be for scores that know nothing of the message."""
    levels = [one.chance for one in measured.readings(name, attack, TAIL, layer).values() if one.chance is not None]
    return fmean(levels) if levels else None


def _layers(measured: Measured) -> list[Row]:
    """Return the leak AUC of the norm attack at the output of every deep layer (Fig. 2c)."""
    depth = len(getattr(measured.study.network, "hidden", ()))
    places = {number: f"relu{number}" if number < depth else None for number in range(1, depth + 1)}
    return [
        {
            "data_set": measured.study.name,
            "defence": name,
            "layer": number,
            **over_seeds("leak_auc", measured.values(name, NORM, "leak_auc", where).values()),
            **over_seeds("leak_auc_q95", measured.values(name, NORM, TAIL, where).values()),
            "chance": _chance(measured, name, NORM, where),
        }
        for name in (NONE, PROTECTED, BASELINE, MAX_NORM)
        for number, where in places.items()
    ]


def _trade_offs(measured: Measured) -> list[Row]:
    """Return test AUC beside leakage for every defence; leakage is the 95 % quantile at the cut."""
    plain = measured.utility(NONE)
    return [
        {
            "data_set": measured.study.name,
            "defence": name,
            **over_seeds("test_auc", measured.utility(name).values()),
            **over_seeds("lost_auc", differences(plain, measured.utility(name))),
            **over_seeds("training_loss", measured.loss(name).values()),
            **over_seeds("norm_q95", leaks(measured, name, ATTACKS[0]).values()),
            **over_seeds("direction_q95", leaks(measured, name, ATTACKS[1]).values()),
            **over_seeds("clustering_q95", leaks(measured, name, ATTACKS[2]).values()),
            **over_seeds("strongest_q95", leaks(measured, name, STRONGEST).values()),
        }
        for name in measured.defences
    ]


def _steps(measured: Measured) -> list[Row]:
    """Return the AUC on held-out training rows by the number of steps."""
    found: dict[int, list[float]] = {count: [] for count in measured.study.candidates}
    for record in measured.steps:
        auc = record.reading("auc")
        if auc is not None and isinstance(record.cell.scenario, Split):
            found[record.cell.scenario.rounds].append(auc.value)
    return [
        {
            "data_set": measured.study.name,
            "steps": count,
            "chosen": count == measured.study.rounds,
            **over_seeds("held_out_auc", values),
        }
        for count, values in found.items()
    ]
