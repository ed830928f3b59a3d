"""Markdown: what came of a gate, for a pull request."""

from __future__ import annotations

import re
from collections.abc import Sequence

from leaktight.core.display import count
from leaktight.core.metric import Reading
from leaktight.findings.gate import Gate
from leaktight.findings.sentence import price_words
from leaktight.findings.summary_form import VerdictEntry

_SPECIAL = re.compile(r"([\\`*_\[\]<>|~#])")


def as_markdown(gate: Gate) -> str:
    """Return the criteria, the verdicts behind them, and the reasons to doubt the audit."""
    parts = [
        f"## Leaktight: {'passed' if gate.passed else 'failed'}",
        f"{escape(gate.summary.title)}. {escape(str(gate))}",
        _table(
            ("criterion", "", "found"),
            [(one.name, "passed" if one.passed else "**failed**", escape(one.sentence)) for one in gate.criteria],
        ),
    ]
    if gate.judged:
        header = ("defence", "leak", "verdict", "strongest attack", "it got", "price in points")
        parts += ["### Verdicts", _table(header, [_row(one) for one in gate.judged])]
    doubts = [flag.sentence for flag in gate.summary.flags if flag.severity == "doubt"]
    if doubts:
        heading = count(len(doubts), "reason")
        lines = "\n".join(f"- {escape(sentence)}" for sentence in doubts)
        parts.append(f"<details><summary>{heading} to doubt this audit</summary>\n\n{lines}\n\n</details>")
    parts.append("No attack that fails shows that none can succeed.")
    return "\n\n".join(parts) + "\n"


def escape(text: str) -> str:
    r"""Return a text that Markdown shows as it is, on one line.

    Example:
        >>> print(escape("top_k | share"))
        top\_k \| share
    """
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))


def _row(entry: VerdictEntry) -> tuple[str, ...]:
    loss = (
        None
        if entry.price is None
        else Reading(name="price", value=entry.price, low=entry.price_low, high=entry.price_high)
    )
    price = "-" if loss is None else price_words(loss)
    word = f"{entry.verdict}{', useless' if entry.learned_nothing and entry.verdict != 'useless' else ''}"
    return tuple(
        map(escape, (entry.defence_name, entry.kind, word, entry.attack, f"{entry.figure} {entry.measure}", price))
    )


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
