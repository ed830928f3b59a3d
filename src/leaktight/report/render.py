"""Render: records in, one self-contained HTML file out."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from pkgutil import resolve_name

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from markupsafe import Markup
from plotly.offline import get_plotlyjs

from leaktight.core.private import write_private
from leaktight.core.record import Record
from leaktight.findings.kind import leak_kinds
from leaktight.findings.redaction import number_seeds, redact_records, without_seeds
from leaktight.findings.summary import Summary
from leaktight.plans.plan import Plan
from leaktight.report.characteristic import characteristic_section
from leaktight.report.findings import advice_section, flags_section, glossary_section, verdict_section
from leaktight.report.layers import layers_section
from leaktight.report.numbers import checks_section, table_section
from leaktight.report.page import MakeSection, Page, Pictures, Section
from leaktight.report.plots import tradeoff_section
from leaktight.report.settings import parameters_section, reproduce_section, threat_section
from leaktight.running.store import Store

SUMMARY: tuple[MakeSection, ...] = (verdict_section, advice_section)
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
"""The parts of a report, in order; one that has nothing to show returns None.

A new part is a function and a template.
"""

_HERE = Path(__file__).parent
_UNIT = re.compile(r"(?<=\d) (?=%|dB\b|points?\b)")


def write_report(folder: Path, out: Path | None = None, redact: bool = False, summary: Summary | None = None) -> Path:
    """Write the report of an audit's folder and return where it is.

    The file is made for its owner alone (mode 0600) and appears whole or not at all.

    Args:
        folder: where the audit is stored.
        out: the file to write; by default `report.html`, or `report-redacted.html`, in that folder.
        redact: whether to leave out every image, every single image's value and the seeds, so that the report can be
            passed on.
        summary: that of all records, if it is known already; a redacted report has a summary of its own.
    """
    path = out or folder / ("report-redacted.html" if redact else "report.html")
    with Store.read(folder) as store:
        text = render(store.records(), store.plan(), store.versions(), store.gallery, redact, summary=summary)
    write_private(path, text.encode())
    return path


def render(
    records: Sequence[Record],
    plan: Plan,
    versions: Mapping[str, str],
    gallery: Pictures,
    redact: bool = False,
    sections: Sequence[MakeSection] | None = None,
    summary: Summary | None = None,
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
    """
    whole = records if redact else None
    if redact:
        numbers = number_seeds([*plan.grid.seeds, *(record.cell.seed for record in records)])
        records, plan = redact_records(records, numbers, pairs=True), without_seeds(plan, numbers)
        gallery = _no_pictures
    page = Page.of(records, plan, versions, gallery, redact, whole, None if redact else summary)
    found = [
        section for make in (all_sections() if sections is None else sections) if (section := make(page)) is not None
    ]
    environment = _environment()
    plots = {name: figure for section in found for name, figure in section.plots.items()}
    # Without a plot, five megabytes of plotting library would have nothing to draw.
    scripts = [_plotting(), _script()] if plots else [_script()]
    return environment.get_template("page.html").render(
        plan=plan,
        redact=redact,
        pictures=any(section.private for section in found) and not redact,
        sections=[(section, Markup(_template(section).render(section.values))) for section in found],  # noqa: S704
        plots=plots,
        style=Markup((_HERE / "page.css").read_text()),  # noqa: S704
        scripts=[Markup(script) for script in scripts],  # noqa: S704
        policy=_policy(scripts),
        version=versions.get("leaktight", ""),
    )


def all_sections() -> tuple[MakeSection, ...]:
    """Return every part of a report, in order: those of the kinds of leak stand before and after the charts."""
    kinds = leak_kinds()
    galleries = dict.fromkeys(name for kind in kinds for name in kind.galleries)
    sections = dict.fromkeys(name for kind in kinds for name in kind.sections)
    return (*SUMMARY, *map(resolve_name, galleries), tradeoff_section, *map(resolve_name, sections), *DETAILS)


def _template(section: Section) -> Template:
    environment = _environment()
    return environment.from_string(section.text) if section.text else environment.get_template(section.template)


def _no_pictures(key: str) -> None:
    return None


@cache
def _environment() -> Environment:
    loader = FileSystemLoader(_HERE)
    made = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    made.filters["tied"] = _tie_units
    return made


def _tie_units(text: str) -> str:
    """Keep numbers and their units on one line."""
    return _UNIT.sub("\u00a0", text)


@cache
def _plotting() -> str:
    """Return plotly.js with one word of its icons spelt otherwise.

    So `data:image` in a report means a picture of ours.
    """
    return str(get_plotlyjs()).replace("data:image", r"data\x3aimage")


def _script() -> str:
    text = (_HERE / "script.html").read_text().strip()
    return text.removeprefix("<script>").removesuffix("</script>")


def _policy(scripts: Sequence[str]) -> str:
    """Return the page's own rules for the browser: run these very scripts and nothing else, load nothing."""
    hashes = " ".join(
        f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'" for script in scripts
    )
    return (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
