"""A layer study on the terminal: a line for each layer.

It shows which layer gives most away by itself, and which cheap measure points there.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from leaktight.core.metric import Reading
from leaktight.findings.display import title_of
from leaktight.findings.kind import layer_measures
from leaktight.findings.layer_measure import SENSITIVITY
from leaktight.findings.layer_risk import MUTUAL_INFORMATION, LayerRow, correlations
from leaktight.findings.layer_words import layer_sentences

WIDE = 160


def show(rows: Sequence[LayerRow], console: Console | None = None) -> None:
    """Print what was measured of each layer, the riskiest ones, and how measures go together with attacks.

    Args:
        rows: what was measured, in the order of the network.
        console: where to print; by default standard output.
    """
    where = console or Console()
    if not where.is_terminal:
        where.width = WIDE
    columns = {name: title for name, title in _columns().items() if any(name in row.readings for row in rows)}
    table = Table("layer", title="Where the leak sits", title_justify="left")
    for title in columns.values():
        table.add_column(title, justify="right")
    for row in rows:
        table.add_row(row.layer, *(_text(row.readings.get(name)) for name in columns))
    where.print(table)
    for sentence in layer_sentences(rows):
        where.print(sentence, soft_wrap=True, highlight=False)
    for one in correlations(rows):
        told = "too few layers, or no variation" if one.r is None else f"Pearson r {one.r:.2f}, p {one.p:.2g}"
        what = f"{title_of(one.metric)} and {title_of(one.attack)}"
        where.print(f"- {what} over {one.n} layers: {told}", soft_wrap=True, highlight=False)


def _columns() -> dict[str, str]:
    """Return every measure and its title, in order: of attacks that ask, of no attack, of attacks that rebuild."""
    found: dict[str, str] = {}
    for measure in layer_measures():
        found |= {measure.reading: measure.column} if measure.asked else {}
        found |= {f"{measure.information}_share": "V-information, share of log 2"} if measure.by_sensitivity else {}
    rest = {f"{SENSITIVITY}_share": "sensitivity, share", f"{MUTUAL_INFORMATION}_share": "activations tell, share"}
    return found | rest | {measure.reading: measure.column for measure in layer_measures() if not measure.asked}


def _text(reading: Reading | None) -> str:
    if reading is None:
        return "-"
    interval = "" if reading.low is None or reading.high is None else f" ({reading.low:.2f} to {reading.high:.2f})"
    return f"{reading.value:.2f}{interval}"
