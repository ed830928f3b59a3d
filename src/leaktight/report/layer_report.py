"""The page of a layer study: one picture of everything that was measured of each layer, and what stands behind it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from leaktight.core.private import write_private
from leaktight.core.record import Record
from leaktight.findings.layer_risk import correlations, layer_rows
from leaktight.findings.layer_words import layer_sentences, together
from leaktight.report.findings import flags_section, glossary_section
from leaktight.report.layers import FIRST, figure_of, table_of_rows
from leaktight.report.numbers import checks_section, table_section
from leaktight.report.page import Page, Section
from leaktight.report.render import render
from leaktight.report.settings import parameters_section, threat_section
from leaktight.running.store import Store

PLOT = "plot-layers"


def write_layer_report(folders: Sequence[Path], out: Path) -> Path:
    """Write one page from the audits of a layer study and return where it is; no private example is on it.

    Args:
        folders: where the audits are stored; the first one's plan heads the page.
        out: the file to write, for its owner alone.
    """
    records: list[Record] = []
    for folder in folders:
        with Store.read(folder) as store:
            records += store.records()
    with Store.read(folders[0]) as store:
        text = render(records, store.plan(), store.versions(), lambda key: None, redact=True, sections=SECTIONS)
    write_private(out, text.encode())
    return out


def whole_section(page: Page) -> Section | None:
    """Show what all audits together measured of each layer."""
    rows = layer_rows(page.records)
    if not rows:
        return None
    block = {
        "setting": "all that was measured, without defence",
        "captions": {PLOT: "No defence"},
        "left": 0,
        "said": [{"name": "No defence", "sentences": [*layer_sentences(rows), *together(correlations(rows))]}],
        "table": table_of_rows([("No defence", rows, None)]),
    }
    plots = {PLOT: figure_of(rows, least=FIRST)}
    return Section("layers", "Where the leak sits", "layers.html", {"blocks": [block], "several": False}, plots)


SECTIONS = (
    whole_section,
    table_section,
    flags_section,
    checks_section,
    threat_section,
    glossary_section,
    parameters_section,
)
