"""Findings: the summary on one page, the doubts, and the words that the numbers need."""

from __future__ import annotations

from leaktight.core.defence import links
from leaktight.core.record import Status
from leaktight.defences import Transformation
from leaktight.findings.bound import TELLING
from leaktight.findings.evidence import MOST_FAILED
from leaktight.findings.kind import leak_kinds
from leaktight.findings.utility import ACCURACY
from leaktight.metrics.search_gap import SEARCH_FAILED
from leaktight.report.page import Page, Section
from leaktight.report.sheet import Sheet

LAYERED = ("v_information", "sensitivity", "mutual_information")
"""How the names of readings begin that are explained where they occur."""


def summary_section(page: Page) -> Section:
    """Say on one page what leaks, what each defence does about it, which to take, and what to doubt."""
    sheet = Sheet.of(page)
    values = {
        "sheet": sheet,
        "bar": explain_bars(sheet),
        "doubts": sum(flag.severity == "doubt" for flag in page.flags),
        "notes": [*(kind.verdict_note(page.summary.rows, page.records) for kind in leak_kinds()), *policies_of(page)],
        "one_seed": len(page.summary.seeds) == 1 and bool(page.advice),
    }
    return Section("summary", "Summary", "summary.html", values)


def explain_bars(sheet: Sheet) -> str:
    """Say what the bars of a sheet show, and no more than they have; nothing where there is none."""
    gauges = [line.gauge for group in sheet.groups for line in group.lines if line.gauge is not None]
    parts = [
        *(["Bar: what the strongest attack got"] if gauges else []),
        *(["thin line: its 95 % interval"] if any(one.low is not None for one in gauges) else []),
        *(["tick: what guessing gets"] if any(one.chance is not None for one in gauges) else []),
    ]
    return f"{'; '.join(parts)}." if parts else ""


def policies_of(page: Page) -> list[str]:
    """Say in words what each transformation policy of the audit does to an image."""
    found = {}
    for record in page.records:
        for link in links(record.cell.defence):
            if isinstance(link, Transformation) and link.policy is not None:
                found[str(link.policy)] = f"Policy {link.policy}: {link.policy.words}."
    return list(found.values())


def flags_section(page: Page) -> Section:
    """List every reason to doubt the audit, and how far it got."""
    counts = {status.value: page.summary.counts.get(status, 0) for status in Status}
    return Section(
        "doubts",
        "Reasons to doubt this audit",
        "flags.html",
        {"flags": page.flags, "counts": counts, "missing": page.missing},
    )


def glossary_section(page: Page) -> Section:
    """Explain the words that the numbers need."""
    shown = tuple(reading.name for row in page.summary.rows for reading in row.readings)
    layered = [measure for measure in LAYERED if any(name.startswith(measure) for name in shown)]
    kinds = leak_kinds()
    words = {kind: kind.glossary(shown, page.records) for kind in kinds}
    if not layered and not any(words.values()):
        words[kinds[0]] = kinds[0].glossary(kinds[0].names, page.records)
    utilities = {row.utility.name for row in page.summary.rows if row.utility is not None}
    return Section(
        "words",
        "How to read the numbers",
        "glossary.html",
        {
            "kinds": {term: text for entries in words.values() for term, text in entries.items()},
            "accuracy": ACCURACY in utilities or not utilities,
            "curves": page.summary.curves,
            "searches": SEARCH_FAILED in shown,
            "layered": layered,
            "verdicts": {judgement.status for judgement in page.summary.judgements},
            "budgets": any(row.budgets for row in page.summary.rows),
            "telling": TELLING,
            "most_failed": MOST_FAILED,
        },
    )
