"""The frame: sections in, one self-contained HTML page out."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Literal

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from markupsafe import Markup, escape

from leaktight.report.page import Section

Banner = Literal["redacted", "pictures", "values", "open"]
"""What stands above a page: that it was redacted, shows private pictures, may hold private values, or holds neither."""

LEAD = "What the messages of this training give away, and what each defence does about it, at what price."

_HERE = Path(__file__).parent
_UNIT = re.compile(r"(?<=\d) (?=%|dB\b|points?\b)")
_CODE = re.compile(r"`([^`]+)`")


def frame(title: str, sections: Sequence[Section], banner: Banner, version: str, lead: str = LEAD) -> str:
    """Return sections as one HTML text that loads nothing from anywhere.

    Args:
        title: the heading of the page.
        sections: its parts, in order.
        banner: what stands above it.
        version: that of Leaktight.
        lead: the line below the heading.
    """
    script = (_HERE / "script.js").read_text()
    return (
        _environment()
        .get_template("page.html")
        .render(
            title=title,
            lead=lead,
            banner=banner,
            sections=[(section, Markup(_template(section).render(section.values))) for section in sections],  # noqa: S704
            style=Markup(read_styles("palette", "page", "chart")),  # noqa: S704
            script=Markup(script),  # noqa: S704
            policy=_policy(script),
            version=version,
        )
    )


def read_styles(*names: str) -> str:
    """Return style sheets of this folder, one after the other."""
    return "".join((_HERE / f"{name}.css").read_text(encoding="utf-8") for name in names)


def _template(section: Section) -> Template:
    environment = _environment()
    return environment.from_string(section.text) if section.text else environment.get_template(section.template)


@cache
def _environment() -> Environment:
    loader = FileSystemLoader(_HERE)
    environment = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["tied"] = tie
    environment.filters["code"] = mark_code
    return environment


def tie(text: str) -> str:
    """Keep numbers and their units on one line."""
    return _UNIT.sub("\u00a0", text)


def mark_code(text: str) -> Markup:
    """Show what stands between backticks as code.

    Example:
        >>> mark_code("add `--truth` & run")
        Markup('add <code>--truth</code> &amp; run')
    """
    return Markup(_CODE.sub(r"<code>\1</code>", str(escape(text))))  # noqa: S704


def _policy(script: str) -> str:
    """Return the page's own rules for the browser: run this very script and nothing else, load nothing."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
