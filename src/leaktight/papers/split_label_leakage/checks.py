"""Checks: what the paper claims, on our numbers, for each data set."""

from __future__ import annotations

import math

from leaktight.papers.estimate import Estimate
from leaktight.papers.reproduction import Check, Row, Tables, above, at_least, at_most, estimate, number, rows_where, within
from leaktight.papers.split_label_leakage.equal_leak import ATTACKS, STRONGEST
from leaktight.papers.split_label_leakage.mechanisms import NONE, PROTECTED
from leaktight.papers.split_label_leakage.tables import CUT, LAYERS
from leaktight.probes.class_gradients import CLASSES as LABELS

HIGH, LOW, LOST, STEPS = 0.8, 0.6, 0.02, 0.005
"""A leak AUC that is high, and one that is low; how much test AUC, and how much held-out AUC, may be lost."""


def checks_of(tables: Tables) -> list[Check]:
    """Return every claim for every data set."""
    names = dict.fromkeys(str(row["data_set"]) for row in tables["trade_off"])
    return [check for name in names for check in _checks(tables, name)]


def _checks(tables: Tables, name: str) -> list[Check]:
    own = {table: rows_where(rows, data_set=name) for table, rows in tables.items()}
    found = _factors(own["distributions"], name)
    for layer in LAYERS:
        leak = _value(own["training"], "leak_auc", layer=layer, defence=NONE)
        found.append(at_least(f"Median leak AUC of the norm attack, unprotected, {layer} layer, {name}", leak, HIGH))
    for layer in LAYERS:
        tail = _value(own["training"], "leak_auc_q95", layer=layer, defence=PROTECTED)
        found.append(
            at_most(f"95 % quantile of the leak AUC of the norm attack, {PROTECTED}, {layer} layer, {name}", tail, LOW)
        )
    found.append(_order(own["training"], name))
    lost = _value(own["trade_off"], "lost_auc", defence=PROTECTED)
    found.append(at_most(f"Test AUC(unprotected) - Test AUC({PROTECTED}), {name}", lost, LOST))
    for attack in (ATTACKS[0], STRONGEST):
        gain = _value(own["equal_leak"], "gain", attack=attack)
        measured = "the strongest attack's (our own measure)" if attack == STRONGEST else f"the {attack} attack's"
        found.append(above(f"Test AUC({PROTECTED}) - Test AUC(isotropic) at {measured} equal leak AUC, {name}", gain, 0))
    if own["steps"]:
        found.append(_chosen(own["steps"], name))
    return found


def _factors(rows: list[Row], name: str) -> list[Check]:
    """Compare the medians of both classes at each moment of an unprotected training: the error differs, the slope does not."""
    own = rows_where(rows, defence=NONE)
    gaps, orders = [], []
    for moment in dict.fromkeys(row["moment"] for row in own):
        negative, positive = (next(iter(rows_where(own, moment=moment, label=label)), {}) for label in LABELS)
        errors = number(negative, "error_q50"), number(positive, "error_q50")
        slopes = number(negative, "slope_q50"), number(positive, "slope_q50")
        if errors[0] is not None and errors[1] is not None:
            gaps.append(errors[1] - errors[0])
        if slopes[0] and slopes[1]:
            orders.append(math.log10(slopes[1] / slopes[0]))
    where = f"medians at the moment where it is {{}}, unprotected, {name}"
    return [
        above(f"Error(positives) - error(negatives), {where.format('least')}", min(gaps, default=None), 0),
        within(
            f"log10(slope(positives) / slope(negatives)), {where.format('farthest from 0')}",
            max(orders, key=abs, default=None),
            1,
        ),
    ]


def _order(rows: list[Row], name: str) -> Check:
    """Compare the weakest and the strongest bound; with one bound alone, no protection and that one."""
    cut = rows_where(rows, layer=CUT)
    protected = [row for row in cut if row["defence"] != NONE]
    first = protected[0] if len(protected) > 1 else next(iter(rows_where(cut, defence=NONE)), {})
    ends = [number(row, "leak_auc") for row in (first, protected[-1] if protected else {})]
    weak = first.get("defence", NONE)
    value = None if ends[0] is None or ends[1] is None else ends[0] - ends[1]
    return above(f"Leak AUC({weak}) - leak AUC({PROTECTED}), norm attack, cut layer, {name}", value, 0)


def _chosen(rows: list[Row], name: str) -> Check:
    """Compare the chosen number of steps with the best."""
    values = [number(row, "held_out_auc") for row in rows]
    known = [value for value in values if value is not None]
    chosen = _value(rows, "held_out_auc", chosen=True)
    value = max(known) - chosen.value if known and chosen is not None else None
    return at_most(f"Held-out AUC of the best number of steps - that of the chosen one, {name}", value, STEPS)


def _value(rows: list[Row], column: str, **wanted: str | bool) -> Estimate | None:
    found = rows_where(rows, **wanted)
    return estimate(found[0], column) if found else None
