"""The page of a reproduction: what holds, then each table and a chart of it, ours beside the published numbers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from leaktight import __version__
from leaktight.core.display import duration
from leaktight.papers.check import NOT_MEASURED, tally
from leaktight.papers.number_text import around
from leaktight.papers.paper import Paper
from leaktight.papers.reproduction import Reproduction
from leaktight.papers.row import Row
from leaktight.papers.table import Colours, table_of
from leaktight.report.chart import Figure
from leaktight.report.earlier import Tell, write_beside
from leaktight.report.frame import Banner, frame
from leaktight.report.page import Section
from leaktight.report.render import write_report
from leaktight.running.store import STORE_FILE

PAGE_FILE = "reproduction.html"
LEAD = "A published experiment, run again: our numbers beside the published ones."
SMOKE = "The scale smoke shows that every part runs; use `--scale small` or `--scale paper` to judge a claim."


def write_page(
    paper: Paper[Any], done: Reproduction, folder: Path, force: bool = False, tell: Tell | None = None
) -> Path:
    """Write the page of a reproduction, and the report of each of its audits, and return where the page is.

    Args:
        paper: which one; it names the columns by which rows belong together.
        done: what came of it.
        folder: that of the reproduction, with an audit in each of its folders.
        force: whether earlier pages are replaced.
        tell: is told the names of earlier pages that were kept.
    """
    audits = sorted(place.parent for place in folder.glob(f"*/{STORE_FILE}"))
    for audit in audits:
        write_report(audit, force=force, tell=tell)
    more = paper.sections(done.tables, done.published, folder)
    text = render_page(paper, done, [audit.name for audit in audits], more)
    return write_beside(folder / PAGE_FILE, text.encode(), force, tell)


def render_page(paper: Paper[Any], done: Reproduction, audits: Sequence[str] = (), more: Sequence[Section] = ()) -> str:
    """Return the page of a reproduction as one HTML text that loads nothing from anywhere.

    Args:
        paper: which one.
        done: what came of it.
        audits: the names of the folders whose reports it links to.
        more: sections of the paper's own, before the tables.
    """
    colours = Colours()
    sections = [_summary(done, audits), *more]
    sections += [
        _table(name, rows, done.published.get(name, []), paper.keys[name], colours)
        for name, rows in done.tables.items()
    ]
    banner: Banner = "pictures" if any(section.private for section in more) else "open"
    return frame(f"{paper.title}, scale {done.scale}", sections, banner, __version__, LEAD)


def _summary(done: Reproduction, audits: Sequence[str]) -> Section:
    values = {
        "headline": tally(done.checks),
        "caution": SMOKE if done.scale == "smoke" else "",
        "checks": [
            {
                "name": check.name,
                "measured": around(check.value, check.low, check.high),
                "expected": check.expected,
                "word": check.word,
                "tone": _TONES[check.word],
                "why": f"{check.why} {check.unless}".strip(),
            }
            for check in sorted(done.checks, key=lambda check: list(_TONES).index(check.word))
        ],
        "remarks": done.remarks,
        "facts": f"Seed {done.seed}, {duration(done.seconds)} of this run.",
        "audits": audits,
    }
    return Section("summary", "What holds", "paper.html", values)


_TONES = {"does not hold": "leaks", "undecided": "unknown", NOT_MEASURED: "unknown", "holds": "passed"}


def _table(name: str, rows: Sequence[Row], published: Sequence[Row], keys: Sequence[str], colours: Colours) -> Section:
    table = table_of(name, rows, published, keys, colours)
    figures = [] if table.chart is None else [Figure(f"plot-{name}", table.title, table.chart, wide=True)]
    return Section(f"table-{name}", table.title, "paper_table.html", {"table": table, "figures": figures})
