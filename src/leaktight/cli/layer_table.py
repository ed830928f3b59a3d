"""A layer study on the terminal: a line for each layer, which gives most away by itself, and which cheap measure points there."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from leaktight.core.metric import Reading
from leaktight.findings.display import title_of
from leaktight.findings.images import PSNR
from leaktight.findings.layer_risk import (
    LABEL_AUC,
    MUTUAL_INFORMATION,
    SENSITIVITY,
    V_INFORMATION,
    LayerRow,
    correlations,
)
from leaktight.findings.layer_words import layer_sentences
from leaktight.findings.property import PROPERTY_AUC

WIDE = 160
COLUMNS = {
    PROPERTY_AUC: "property AUC",
    f"{V_INFORMATION}_share": "V-information, share of log 2",
    LABEL_AUC: "label AUC",
    f"{SENSITIVITY}_share": "sensitivity, share",
    f"{MUTUAL_INFORMATION}_share": "activations tell, share",
    PSNR: "inverted by it alone, labels known: PSNR",
}


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
    for sentence in layer_sentences(rows):
        where.print(sentence, soft_wrap=True, highlight=False)
    for one in correlations(rows):
        told = "too few layers, or no variation" if one.r is None else f"Pearson r {one.r:.2f}, p {one.p:.2g}"
        what = f"{title_of(one.metric)} and {title_of(one.attack)}"
        where.print(f"- {what} over {one.n} layers: {told}", soft_wrap=True, highlight=False)


def _text(reading: Reading | None) -> str:
    if reading is None:
        return "-"
    interval = "" if reading.low is None or reading.high is None else f" ({reading.low:.2f} to {reading.high:.2f})"
    return f"{reading.value:.2f}{interval}"
