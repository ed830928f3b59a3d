"""A layer study on the terminal: a line for each layer.

It shows which layer gives most away by itself, and which cheap measure points there.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from leaktight.cli.text_table import Group, TextTable, print_item, print_lines, print_text
from leaktight.core.display import count
from leaktight.findings.column import show_reading
from leaktight.findings.display import title_of
from leaktight.findings.kind import layer_measures
from leaktight.findings.layer_risk import LayerCorrelation, LayerRow, correlations, sealing_measure, sealings
from leaktight.findings.layer_words import layer_sentences, titles_without_attack

WIDE = 160
MOST = 3
"""How many correlations are shown; the others are counted."""


def show(
    rows: Sequence[LayerRow], console: Console | None = None, about: Sequence[str] = (), question: str = ""
) -> None:
    """Print which layers give most away, what was measured of each, and how measures go together with attacks.

    Args:
        rows: what was measured, in the order of the network.
        console: where to print; by default standard output.
        about: what was asked, and what the attacker was given, in sentences.
        question: what an attack on the private property asks of the examples; by default whether they have it.
    """
    where = console or Console()
    if not where.is_terminal:
        where.width = WIDE
    for sentence in (*about, *layer_sentences(rows, question)):
        print_text(where, sentence)
    columns = {name: title for name, title in _columns().items() if any(name in row.readings for row in rows)}
    cells = [[row.layer, *(show_reading(row.readings.get(name)) for name in columns)] for row in rows]
    print_text(where, "\nWhere the leak sits:")
    print_lines(where, TextTable(["Layer", *columns.values()], [Group("", cells)]).lines(where.width))
    _show_sealing(where, rows)
    found = sorted(correlations(rows), key=_strength)
    if found:
        print_text(where, "\nDo cheap measures point at what attacks get?")
        for one in found[:MOST]:
            print_item(where, _sentence(one))
        if len(found) > MOST:
            more = count(len(found) - MOST, "pair")
            print_item(where, f"{more} more in the files; these are the clearest, and of so many some are so by luck")


def _show_sealing(where: Console, rows: Sequence[LayerRow]) -> None:
    """Print what is still told once layers are sealed, one after the other."""
    measure = sealing_measure(rows)
    steps = [] if measure is None else sealings(rows, measure)
    if measure is None or not steps:
        return
    total = steps[-1].bytes
    cells = [
        [
            step.layer,
            str(step.count),
            f"{step.bytes:,} ({100 * step.bytes / total:.0f} %)",
            show_reading(step.remaining),
        ]
        for step in steps
    ]
    print_text(where, f"\nWhat the other layers tell of {measure.noun} once layers are sealed, from the top:")
    heads = ["Layer", "sealed", "bytes of parameters", "AUC of the rest"]
    print_lines(where, TextTable(heads, [Group("", cells)]).lines(where.width))


def _strength(one: LayerCorrelation) -> tuple[bool, float]:
    """Return what correlations are ranked by: the clearest first, those that say nothing last."""
    return one.p is None, 0.0 if one.p is None else one.p


def _sentence(one: LayerCorrelation) -> str:
    numbers = "too few layers, or no variation" if one.r is None else f"Pearson r {one.r:.2f}, p {one.p:.2g}"
    return f"{title_of(one.metric)} and {title_of(one.attack)} over {one.n} layers: {numbers}"


def _columns() -> dict[str, str]:
    """Return every measure and its title, in order: of attacks that ask, of no attack, of attacks that rebuild."""
    asking, rebuilding = (
        {measure.reading: measure.column for measure in layer_measures() if bool(measure.question) is asks}
        for asks in (True, False)
    )
    return asking | titles_without_attack() | rebuilding
