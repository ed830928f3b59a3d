"""Pages of the documentation about papers, in Markdown: made from results that runs wrote, and from nothing else."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from leaktight.core.errors import InvalidValue
from leaktight.papers.check import NOT_MEASURED, Check, tally
from leaktight.papers.number_text import NOTHING, around
from leaktight.papers.paper import Paper
from leaktight.papers.reproduction import Reproduction
from leaktight.papers.summary import Attacker, Claim, result_of
from leaktight.papers.table import Colours, Table, table_of
from leaktight.report.picture import draw_picture

SCALE = "small"
MISSING = "not run yet at this scale"
NO_REASON = "No reason found yet."
MOST_ROWS = 40
"""Longer tables are in the result file alone."""
_SPAN = re.compile(r"(`[^`]+`)")
_MARKS = re.compile(r"([\\|*_<>\[\]])")
_WORDS = ("does not hold", "undecided", NOT_MEASURED, "holds")


def read_result(text: str, paper: Paper[Any]) -> Reproduction:
    """Return the result of a run as it was written; raise an error if it is of another paper, or no whole run.

    Reasons are taken from the paper as it is now: they are found after a run.

    Args:
        text: the JSON that `leaktight reproduce` wrote.
        paper: which one.
    """
    done = Reproduction.model_validate_json(text)
    if (done.paper, done.scale, done.steps) != (paper.name, SCALE, None):
        raise InvalidValue(
            f"The result of {paper.name} must be that of a whole run at the scale `{SCALE}`. Got {done.paper} at the "
            f"scale `{done.scale}`{f', cut to {done.steps}' if done.steps else ''}. Run `{_command(paper)}`."
        )
    return done.model_copy(update={"checks": tuple(paper.summary.explain(done.checks))})


def paper_page(paper: Paper[Any], done: Reproduction | None) -> str:
    """Return the page of one paper in Markdown.

    Args:
        paper: which one.
        done: its result; None says on the page that there is none.
    """
    parts = [
        "<!-- Made by `python docs/paper_pages.py`. Change the paper's summary or its result instead. -->",
        f"# {paper.name.replace('-', ' ').capitalize()}",
        f"{mark(paper.title)}.",
        mark(paper.summary.about),
        "## What it claims, and what we measured",
        _headline(done),
        _claims(paper, done, "published"),
        "## What survives the strongest attacker",
        _claims(paper, done, "strongest"),
    ]
    if done is not None:
        parts += ["## Every check", _checks(done.checks), *_reasons(done.checks), "## Tables and charts"]
        for name, table in _tables(done).items():
            parts += _table(paper, name, table)
        parts += ["## What a reader must know", _list([mark(remark) for remark in done.remarks])]
    parts += [
        "## What we could not run",
        _list([mark(sentence) for sentence in paper.summary.not_run]) or "Nothing is known to be left out.",
        "## Run it again",
        f"`{_command(paper)}`, then `python docs/paper_pages.py`. An interrupted run resumes."
        + (f" The numbers of this page are in [{paper.name}.json](../results/{paper.name}.json)." if done else ""),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def pictures(done: Reproduction) -> dict[str, str]:
    """Return the SVG of each table that can be drawn, by the name of the table."""
    return {name: draw_picture(table.chart) for name, table in _tables(done).items() if table.chart is not None}


def claims_table(results: Mapping[str, Reproduction | None], papers: Mapping[str, Paper[Any]]) -> str:
    """Return what each paper claims, what it reports, what we measured, and whether it holds, as one table."""
    heads = ["paper", "claim", "published", "ours", "holds?"]
    rows = [
        [f"[{name}](papers/{name}.md)", *_claim(claim, results[name])]
        for name, paper in papers.items()
        for claim in paper.summary.claims
    ]
    return _grid(heads, rows)


def mark(text: str) -> str:
    r"""Return a text in which Markdown sees no marks but code.

    Example:
        >>> mark("AUC(a_b) | `c_d`")
        'AUC(a\\_b) \\| `c_d`'
    """
    parts = _SPAN.split(text)
    return "".join(part if part.startswith("`") else _MARKS.sub(r"\\\1", part) for part in parts).replace("\n", " ")


def _command(paper: Paper[Any]) -> str:
    return f"leaktight reproduce {paper.name} --scale {SCALE} --data FOLDER --json docs/results/{paper.name}.json"


def _headline(done: Reproduction | None) -> str:
    if done is None:
        return f"**{MISSING.capitalize()}.** No number stands here until a run has written one."
    return f"**{tally(done.checks)}** Scale `{done.scale}`, seed {done.seed}. Numbers with 95 % intervals."


def _claims(paper: Paper[Any], done: Reproduction | None, attacker: Attacker) -> str:
    claims = [claim for claim in paper.summary.claims if claim.attacker == attacker]
    if not claims:
        return "No claim is checked this way yet."
    return _grid(["claim", "published", "ours", "holds?"], [_claim(claim, done) for claim in claims])


def _claim(claim: Claim, done: Reproduction | None) -> list[str]:
    checks = claim.among(done.checks) if done else []
    words = [claim.claim, claim.published, _measured(checks), result_of(checks) if done else MISSING]
    return [mark(word) for word in words]


def _measured(checks: Sequence[Check]) -> str:
    """Return the number of a check with its interval; of several, the least and the largest."""
    known = [check for check in checks if check.value is not None]
    if not known:
        return NOTHING
    if len(known) == 1:
        return around(known[0].value, known[0].low, known[0].high)
    values = [check.value for check in known if check.value is not None]
    return f"{around(min(values), None, None)} to {around(max(values), None, None)}, {len(known)} checks"


def _checks(checks: Sequence[Check]) -> str:
    rows = [
        [mark(check.name), around(check.value, check.low, check.high), mark(check.expected), check.word]
        for check in sorted(checks, key=lambda check: _WORDS.index(check.word))
    ]
    return _grid(["check", "measured (95 %)", "expected", "result"], rows) if rows else tally(checks)


def _reasons(checks: Sequence[Check]) -> list[str]:
    failing = [check for check in checks if check.word == "does not hold"]
    said = [f"*{mark(check.name)}*: {mark(f'{check.why or NO_REASON} {check.unless}'.strip())}" for check in failing]
    return ["### Why some do not hold", _list(said)] if said else []


def _tables(done: Reproduction) -> dict[str, Table]:
    colours = Colours()
    return {
        name: table_of(name, rows, done.published.get(name, []), done.keys[name], colours)
        for name, rows in done.tables.items()
    }


def _table(paper: Paper[Any], name: str, table: Table) -> list[str]:
    parts = [f"### {mark(table.title)}", _list([f"Published: {mark(claim)}" for claim in table.claims])]
    if table.chart is not None:
        parts.append(f"![{mark(table.chart.about)}]({paper.name}/{name}.svg)")
    if not table.lines:
        return [*parts, "Nothing was measured for this table."]
    if len(table.lines) > MOST_ROWS:
        return [*parts, f"The table has {len(table.lines)} rows: they are in the result file."]
    return [*parts, _grid([mark(head) for head in table.heads], [[mark(cell) for cell in row] for row in table.lines])]


def _grid(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(cell or ' ' for cell in line)} |" for line in lines)


def _list(sentences: Sequence[str]) -> str:
    return "\n".join(f"- {sentence}" for sentence in sentences)
