"""The norm attack over training, at the cut and at the first layer, under sumKL (Fig. 2a, 2b)."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, median

from leaktight.core.metric import Reading
from leaktight.papers.check import Check, above, at_least, at_most
from leaktight.papers.comparison import difference
from leaktight.papers.paper import Experiment
from leaktight.papers.records import Records
from leaktight.papers.row import Row, claims, groups, over_seeds, reading_of, rows_where, value_at
from leaktight.papers.split_label_leakage.audits import TAIL, chance, leak_readings, leak_values, plan_leaks, utility
from leaktight.papers.split_label_leakage.mechanisms import NONE, NORM, PROTECTED, sumkl
from leaktight.papers.split_label_leakage.scales import Study

CUT, FIRST = "cut", "first"
LAYERS = {CUT: None, FIRST: "relu1"}
"""The paper's layers 4 and 1, as our readings name them."""
FIFTHS = 5
HIGH, LOW = 0.8, 0.6
"""A leak AUC that is high, and one that is low."""
PUBLISHED = claims(
    (
        "Without protection the leak AUC at the cut is consistently around 0.9 through the majority of training.",
        "4, Fig. 2a",
    ),
    ("With sumKL it is much lower, and lower the higher the bound L.", "4, Fig. 2a"),
    (
        "At the first layer it is at the same high level without protection, and significantly lower with it.",
        "4, Fig. 2b",
    ),
)


def rows(studies: Sequence[Study], records: Records) -> list[Row]:
    """Return a row for each layer and bound, with the medians of each fifth of the training run."""
    return [
        _row(study, records, layer, name)
        for study in studies
        for layer in LAYERS
        for name in (NONE, *(sumkl(bound) for bound in study.bounds))
    ]


def checks(rows: Sequence[Row]) -> list[Check]:
    """Ask for a high leak without protection and a low one with it, and the lower the higher the bound."""
    return [check for (name,), own in groups(rows, "data_set") for check in _checks(own, name)]


def _row(study: Study, records: Records, layer: str, name: str) -> Row:
    where = LAYERS[layer]
    readings = list(leak_readings(study, records, name, NORM, "leak_auc", where).values())
    row: Row = {"data_set": study.name, "layer": layer, "defence": name}
    row |= over_seeds("leak_auc", [reading.value for reading in readings])
    row |= over_seeds("leak_auc_q95", leak_values(study, records, name, NORM, TAIL, where).values())
    row["chance"] = chance(study, records, name, NORM, where)
    for fifth in range(FIFTHS):
        values = [part for reading in readings if (part := _median_of(reading, fifth)) is not None]
        row[f"fifth_{fifth + 1}"] = fmean(values) if values else None
    row |= over_seeds("test_auc", utility(study, records, name).values())
    return row


def _median_of(reading: Reading, fifth: int) -> float | None:
    """Return the median of one fifth of the steps that were looked at."""
    start, end = (at * len(reading.each) // FIFTHS for at in (fifth, fifth + 1))
    return median(reading.each[start:end]) if end > start else None


def _checks(rows: Sequence[Row], name: str) -> list[Check]:
    attack = "leak AUC of the norm attack"
    plain = [
        at_least(
            f"Median {attack}, unprotected, {layer} layer, {name}",
            value_at(rows, "leak_auc", layer=layer, defence=NONE),
            HIGH,
        )
        for layer in LAYERS
    ]
    protected = [
        at_most(
            f"95 % quantile of the {attack}, {PROTECTED}, {layer} layer, {name}",
            value_at(rows, "leak_auc_q95", layer=layer, defence=PROTECTED),
            LOW,
        )
        for layer in LAYERS
    ]
    return [*plain, *protected, _order(rows, name)]


def _order(rows: Sequence[Row], name: str) -> Check:
    """Compare the weakest and the strongest bound; with one bound alone, no protection and that one."""
    cut = rows_where(rows, layer=CUT)
    protected = [row for row in cut if row["defence"] != NONE]
    first = protected[0] if len(protected) > 1 else next(iter(rows_where(cut, defence=NONE)), {})
    ends = (reading_of(row, "leak_auc") for row in (first, protected[-1] if protected else {}))
    weak = first.get("defence", NONE)
    gap = difference(*ends)
    return above(f"Leak AUC({weak}) - leak AUC({PROTECTED}), norm attack, cut layer, {name}", gap, 0)


EXPERIMENT = Experiment(
    table="training",
    keys=("data_set", "layer", "defence"),
    plans=plan_leaks,
    rows=rows,
    published=PUBLISHED,
    checks=checks,
)
