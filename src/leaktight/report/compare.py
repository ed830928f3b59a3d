"""The page of a comparison: several audits beside each other, as one HTML file that loads nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from leaktight import __version__
from leaktight.core.display import capital
from leaktight.findings.audit_comparison import AuditComparison, ComparedDefence
from leaktight.findings.comparison_words import say_got, say_price, say_read, say_use
from leaktight.report.frame import read_styles
from leaktight.report.sheet import tone_of

_HERE = Path(__file__).parent
POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
"""The page's own rules for the browser: no script, and nothing is loaded."""


def render_comparison(comparison: AuditComparison) -> str:
    """Return the page; no private example is on it."""
    loader = FileSystemLoader(_HERE)
    environment = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    shared = comparison.shared_lines
    groups = {
        "Changed": [_entry(comparison, line) for line in shared if line.changed],
        "The same": [_entry(comparison, line) for line in shared if not line.changed],
    }
    style = read_styles("palette", "page", "compare")
    return environment.get_template("compare.html").render(
        audits=comparison.audits,
        headline=comparison.headline,
        groups={name: lines for name, lines in groups.items() if lines},
        alone=comparison.alone() if shared else {},
        settings=comparison.settings if shared else (),
        style=Markup(style),  # noqa: S704
        policy=POLICY,
        version=__version__,
    )


def _entry(comparison: AuditComparison, line: ComparedDefence) -> dict[str, Any]:
    entries: list[dict[str, Any]] = []
    for audit, judgement, difference in zip(comparison.audits, line.judgements, line.differences, strict=True):
        if judgement is None:
            entries.append({"letter": audit.letter, "word": ""})
            continue
        said = [] if difference is None else [say_read(difference), say_use(difference)]
        entries.append(
            {
                "letter": audit.letter,
                "word": judgement.status,
                "tone": tone_of(judgement),
                "useless": judgement.worst.useless and judgement.status != "useless",
                "got": say_got(line, judgement),
                "price": say_price(judgement),
                "said": [capital(text) for text in said if text],
            }
        )
    return {"name": capital(line.name), "entries": entries, "changed": line.changed}
