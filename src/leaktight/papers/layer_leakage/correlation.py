"""How well V-information and sensitivity predict the attack, over layers and subjects (Table 1)."""

from __future__ import annotations

from collections.abc import Sequence

from leaktight.papers.check import Check, above, at_least, at_most
from leaktight.papers.correlation import correlation_columns, of_columns
from leaktight.papers.layer_leakage import layers
from leaktight.papers.layer_leakage.audits import AUC, JACOBIAN, MODERATE, STRONG, V_INFORMATION
from leaktight.papers.layer_leakage.networks import ALEXNET, CONVOLUTIONAL, FCNET, VGG11NET
from leaktight.papers.layer_leakage.scales import Study
from leaktight.papers.paper import Experiment
from leaktight.papers.records import Records
from leaktight.papers.row import Entry, Row, reading_of, rows_where

MEASURES = {"V-information": V_INFORMATION, "sensitivity": JACOBIAN}
ALL = "All"
_SMALL = "<0.001"
# Table 1: for V-information, then for sensitivity, t, R and p-value.
TABLE_1: dict[str, dict[str, tuple[float, float, Entry]]] = {
    ALEXNET: {"V-information": (12.20, 0.959, _SMALL), "sensitivity": (3.60, 0.707, 0.003)},
    VGG11NET: {"V-information": (17.35, 0.952, _SMALL), "sensitivity": (5.25, 0.686, _SMALL)},
    FCNET: {"V-information": (18.41, 0.965, _SMALL), "sensitivity": (-0.73, -0.144, 0.472)},
    ALL: {"V-information": (26.21, 0.951, _SMALL), "sensitivity": (2.73, 0.304, 0.008)},
}
PUBLISHED: list[Row] = [
    {"network": network, "measure": measure, "r": r, "t": t, "p": p}
    for network, measures in TABLE_1.items()
    for measure, (t, r, p) in measures.items()
]


def rows(study: Study, records: Records) -> list[Row]:
    """Return a row for each network and measure, and for all networks together."""
    measured = layers.rows(study, records)
    return [
        {
            "network": network,
            "measure": measure,
            **correlation_columns(of_columns(_of_network(measured, network), column, AUC)),
        }
        for network in (*study.networks, ALL)
        for measure, column in MEASURES.items()
    ]


def checks(rows: Sequence[Row]) -> list[Check]:
    """Ask for the published correlations: of V-information everywhere, of sensitivity where there are convolutions."""
    verdicts = [
        at_least(f"R(V-information, property AUC), {_scope(row)}", reading_of(row, "r"), STRONG)
        for row in rows_where(rows, measure="V-information")
    ]
    for row in rows_where(rows, measure="sensitivity"):
        name, r = "R(sensitivity, property AUC)", reading_of(row, "r")
        if row["network"] in CONVOLUTIONAL:
            verdicts.append(above(f"{name}, {_scope(row)}", r, MODERATE))
        elif row["network"] != ALL:
            verdicts.append(at_most(f"{name} without convolutions, {_scope(row)}", r, MODERATE))
    return verdicts


def _of_network(rows: Sequence[Row], network: str) -> list[Row]:
    return list(rows) if network == ALL else rows_where(rows, network=network)


def _scope(row: Row) -> str:
    return "all networks" if row["network"] == ALL else str(row["network"])


EXPERIMENT = Experiment(
    table="correlation",
    keys=("network", "measure"),
    plans=layers.plans,
    rows=rows,
    published=PUBLISHED,
    checks=checks,
)
