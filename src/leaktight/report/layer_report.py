"""The page of a layer study: one picture of everything that was measured of each layer, and what stands behind it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from leaktight.core.record import Record
from leaktight.core.scenario import Scenario
from leaktight.findings.layer_risk import correlations, first_question, layer_rows
from leaktight.findings.layer_words import layer_sentences, together
from leaktight.report.chart import Figure
from leaktight.report.earlier import Tell, write_beside
from leaktight.report.findings import flags_section, glossary_section
from leaktight.report.layers import FIRST, chart_of, has_chance, sealing_charts, table_of_rows
from leaktight.report.numbers import checks_section, table_section
from leaktight.report.page import Page, Section
from leaktight.report.parameters import parameters_section, threat_section
from leaktight.report.render import render
from leaktight.running.store import Store

LEAD = "What each layer of the model gives away by itself, where nothing is done about it. No private example is here."


def write_layer_report(
    folders: Sequence[Path], out: Path, force: bool = False, tell: Tell | None = None, about: Sequence[str] = ()
) -> Path:
    """Write one page from the audits of a layer study and return where it is; no private example is on it.

    Args:
        folders: where the audits are stored; the first one's plan heads the page.
        out: the file to write, for its owner alone; an earlier one that says something else is kept under a number.
        force: whether an earlier page is replaced.
        tell: is told the name of an earlier page that was kept.
        about: what was asked, and what the attacker was given, in sentences.
    """
    records: list[Record] = []
    scenarios: dict[str, Scenario] = {}
    for folder in folders:
        with Store.read(folder) as store:
            records += store.records()
            scenarios |= store.plan().scenarios
    with Store.read(folders[0]) as store:
        plan = store.plan().model_copy(update={"scenarios": scenarios})
        versions = store.versions()
    sections = (partial(whole_section, about=about), *SECTIONS)
    text = render(records, plan, versions, lambda key: None, True, sections, lead=LEAD, banner="open")
    return write_beside(out, text.encode(), force, tell)


def whole_section(page: Page, about: Sequence[str] = ()) -> Section | None:
    """Show what all audits together measured of each layer."""
    rows = layer_rows(page.records)
    if not rows:
        return None
    curves = sealing_charts(rows)
    headline, *others = layer_sentences(rows, first_question(page.records))
    block = {
        "setting": "all that was measured, without defence",
        "figures": [
            Figure("plot-layers", "Each layer by itself", chart_of(rows, first=FIRST), wide=True),
            *(Figure("plot-sealing", "What remains once layers are sealed", chart, wide=True) for chart in curves),
        ],
        "left": 0,
        "said": [
            {"name": "", "sentences": [sentence]} for sentence in (*about, *others, *together(correlations(rows)))
        ],
        "table": table_of_rows([("Without defence", rows, None)]),
    }
    values = {"blocks": [block], "several": False, "headline": headline, "chance": has_chance([block])}
    return Section("layers", "What each layer gives away", "layers.html", values)


SECTIONS = (
    partial(table_section, judged=False),
    flags_section,
    checks_section,
    threat_section,
    glossary_section,
    parameters_section,
)
