"""Render: the report of an audit, from its records alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from pkgutil import resolve_name

from leaktight.captures import Captured
from leaktight.core.record import Record
from leaktight.findings.kind import leak_kinds
from leaktight.findings.redaction import number_seeds, redact_records, without_seeds
from leaktight.findings.summary import AuditSummary
from leaktight.plans.plan import Plan
from leaktight.report.characteristic import characteristic_section
from leaktight.report.earlier import Tell, write_beside
from leaktight.report.findings import flags_section, glossary_section, summary_section
from leaktight.report.frame import LEAD, Banner, frame
from leaktight.report.layers import layers_section
from leaktight.report.numbers import checks_section, table_section
from leaktight.report.page import MakeSection, Page, Pictures
from leaktight.report.parameters import parameters_section, reproduce_section, threat_section
from leaktight.report.tradeoff import tradeoff_section
from leaktight.running.store import Store

OF_CAPTURES = "What these captured messages give away to an attacker who reads them."
"""What stands below the heading of a page about messages that were recorded elsewhere."""
DETAILS: tuple[MakeSection, ...] = (
    layers_section,
    characteristic_section,
    table_section,
    flags_section,
    checks_section,
    threat_section,
    glossary_section,
    parameters_section,
    reproduce_section,
)
"""The parts of a report after its charts, in order; one that has nothing to show returns None.

A new part is a function and a template.
"""


def write_report(
    folder: Path,
    out: Path | None = None,
    redact: bool = False,
    summary: AuditSummary | None = None,
    force: bool = False,
    tell: Tell | None = None,
) -> Path:
    """Write the report of an audit's folder and return where it is.

    The file is made for its owner alone (mode 0600) and appears whole or not at all. An earlier report that says
    something else is kept under a number.

    Args:
        folder: where the audit is stored.
        out: the file to write; by default `report.html`, or `report-redacted.html`, in that folder.
        redact: whether to leave out every image, every single image's value and the seeds, so that the report can be
            passed on.
        summary: that of all records, if it is known already; a redacted report has a summary of its own.
        force: whether an earlier report is replaced.
        tell: is told the name of an earlier report that was kept.
    """
    path = out or folder / ("report-redacted.html" if redact else "report.html")
    with Store.read(folder) as store:
        text = render(store.records(), store.plan(), store.versions(), store.gallery, redact, summary=summary)
    return write_beside(path, text.encode(), force, tell)


def page_of(
    records: Sequence[Record],
    plan: Plan,
    versions: Mapping[str, str],
    gallery: Pictures,
    redact: bool = False,
    summary: AuditSummary | None = None,
) -> Page:
    """Return what a report is made from.

    Args:
        records: what was measured.
        plan: what was to be measured.
        versions: what it was measured with.
        gallery: from a cell's key to its images.
        redact: whether to leave out every image, every single image's value and the seeds.
        summary: that of the records, if it is known already.
    """
    if not redact:
        return Page.of(records, plan, versions, gallery, redact, None, summary)
    numbers = number_seeds([*plan.grid.seeds, *(record.cell.seed for record in records)])
    shown = redact_records(records, numbers, pairs=True)
    return Page.of(shown, without_seeds(plan, numbers), versions, _no_pictures, redact, records)


def render(
    records: Sequence[Record],
    plan: Plan,
    versions: Mapping[str, str],
    gallery: Pictures,
    redact: bool = False,
    sections: Sequence[MakeSection] | None = None,
    summary: AuditSummary | None = None,
    lead: str = "",
    banner: Banner | None = None,
) -> str:
    """Return the report as one HTML text that loads nothing from anywhere.

    Args:
        records: what was measured.
        plan: what was to be measured.
        versions: what it was measured with.
        gallery: from a cell's key to its images.
        redact: whether to leave out every image, every single image's value and the seeds.
        sections: the parts of the page, in order; by default `all_sections`.
        summary: that of the records, if it is known already.
        lead: the line below the heading; by default what follows from where messages come from.
        banner: what stands above the page; by default what follows from its sections.
    """
    page = page_of(records, plan, versions, gallery, redact, summary)
    makers = all_sections() if sections is None else sections
    found = [section for make in makers if (section := make(page)) is not None]
    private = any(section.private for section in found)
    above: Banner = banner or ("redacted" if redact else "pictures" if private else "values")
    captured = any(isinstance(record.cell.scenario, Captured) for record in records)
    return frame(
        page.plan.title, found, above, versions.get("leaktight", ""), lead or (OF_CAPTURES if captured else LEAD)
    )


def all_sections() -> tuple[MakeSection, ...]:
    """Return every part of a report, in order: those of the kinds of leak stand before and after the charts."""
    kinds = leak_kinds()
    galleries = dict.fromkeys(name for kind in kinds for name in kind.galleries)
    sections = dict.fromkeys(name for kind in kinds for name in kind.sections)
    return (summary_section, *map(resolve_name, galleries), tradeoff_section, *map(resolve_name, sections), *DETAILS)


def _no_pictures(key: str) -> None:
    return None
