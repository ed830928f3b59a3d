"""A layer study on the terminal: a line for each layer, what to protect first, and which cheap measure points there."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from leaktight.audit.layer_risk import (
    LABEL_AUC,
    MUTUAL_INFORMATION,
    SENSITIVITY,
    V_INFORMATION,
    LayerRow,
    correlations,
    rankings,
)
from leaktight.audit.property_leak import PROPERTY_AUC
from leaktight.audit.rows import PSNR
from leaktight.audit.words import title_of
from leaktight.core.metric import Reading

WIDE = 160
COLUMNS = {
    PROPERTY_AUC: "property AUC",
    f"{V_INFORMATION}_share": "V-information, share of log 2",
    LABEL_AUC: "label AUC",
    f"{SENSITIVITY}_share": "sensitivity, share",
    f"{MUTUAL_INFORMATION}_share": "activations tell, share",
    PSNR: "inverted alone, PSNR",
}
RISKS = {"property": "the property", "labels": "the labels", "reconstruction": "the examples"}
ATTACKS = {"property": PROPERTY_AUC, "labels": LABEL_AUC, "reconstruction": PSNR}
FIRST = 3
"""How many layers are named as those to protect first."""


def show(rows: Sequence[LayerRow], console: Console | None = None) -> None:
    """Print what was measured of each layer, the riskiest ones, and how measures go together with attacks.

    Args:
        rows: what was measured, in the order of the network.
        console: where to print; by default standard output.
    """
    where = console or Console()
    if not where.is_terminal:
        where.width = WIDE
    columns = [name for name in COLUMNS if any(name in row.readings for row in rows)]
    table = Table("layer", title="Where the leak sits", title_justify="left")
    for name in columns:
        table.add_column(COLUMNS[name], justify="right")
    for row in rows:
        table.add_row(row.layer, *(_text(row.readings.get(name)) for name in columns))
    where.print(table)
    for risk, ranked in rankings(rows).items():
        where.print(_advice(risk, ranked, rows), soft_wrap=True, highlight=False)
    for one in correlations(rows):
        told = "too few layers, or no variation" if one.r is None else f"Pearson r {one.r:.2f}, p {one.p:.2g}"
        what = f"{title_of(one.metric)} and {title_of(one.attack)}"
        where.print(f"- {what} over {one.n} layers: {told}", soft_wrap=True, highlight=False)


def _advice(risk: str, ranked: Sequence[str], rows: Sequence[LayerRow]) -> str:
    """Name the layers to protect first, unless no attack on a single one gets anything."""
    attacked = [row.readings[ATTACKS[risk]] for row in rows if ATTACKS[risk] in row.readings]
    if attacked and not any(reading.beats_chance() for reading in attacked):
        return f"For {RISKS[risk]}: no layer by itself gives away measurably more than guessing."
    return f"Protect first, for {RISKS[risk]}: {', '.join(ranked[:FIRST])}"


def _text(reading: Reading | None) -> str:
    if reading is None:
        return "-"
    interval = "" if reading.low is None or reading.high is None else f" ({reading.low:.2f} to {reading.high:.2f})"
    return f"{reading.value:.2f}{interval}"
