"""Findings: the verdict, the advice and the doubts, in words."""

from __future__ import annotations

from typing import Any

from leaktight.audit.advice import Advice
from leaktight.audit.rows import STATEMENT
from leaktight.audit.verdict import Judgement
from leaktight.audit.words import capital, counted, name_of, undefended
from leaktight.core.record import Status
from leaktight.report.page import Page, Section

BADGES = {
    "stops": "held",
    "reduces": "leaks less",
    "leaks": "leaks",
    "unknown": "not shown",
}


def verdict_section(page: Page) -> Section:
    """Say what leaks and what each defence does about it."""
    summary = page.summary
    judged = [_judged(judgement) for judgement in summary.judgements]
    rest = summary.verdict[len(judged) :] if judged else summary.verdict
    values = {
        "tiles": tiles(page),
        "judged": judged,
        "rest": rest,
        "threshold": summary.threshold,
        "seeds": summary.seeds,
        "missing": page.missing,
    }
    return Section("verdict", "Verdict", "verdict.html", values)


def _judged(judgement: Judgement) -> dict[str, Any]:
    leak = judgement.worst.leak
    return {
        "name": capital(name_of(judgement.defence)),
        "tone": judgement.tone,
        "badge": BADGES[judgement.tone],
        "sentence": judgement.sentence,
        "share": leak.value if leak is not None and leak.name == STATEMENT else None,
        "count": counted(leak) if leak is not None and leak.name == STATEMENT else "",
    }


def tiles(page: Page) -> list[dict[str, str]]:
    """Return the few figures that a hurried reader takes away."""
    found = []
    bare = next((j for j in page.summary.judgements if undefended(j.defence)), None)
    if bare is not None and bare.worst.recognised is not None:
        found.append(
            {"figure": counted(bare.worst.recognised), "label": "images recognised without defence", "tone": bare.tone}
        )
    defended = [j for j in page.summary.judgements if not undefended(j.defence)]
    if defended:
        stopped = sum(j.tone == "stops" for j in defended)
        tone = "stops" if stopped else "leaks"
        found.append({"figure": f"{stopped} of {len(defended)}", "label": "defences stopped every attack tried", "tone": tone})
    cheapest = _cheapest(page.advice, page.summary.judgements)
    if cheapest is not None:
        found.append(cheapest)
    doubts = sum(flag.severity == "doubt" for flag in page.flags)
    label = "reason to doubt these numbers" if doubts == 1 else "reasons to doubt these numbers"
    found.append({"figure": str(doubts or "no"), "label": label, "tone": "reduces" if doubts else "stops"})
    return found


def _cheapest(advice: tuple[Advice, ...], judgements: tuple[Judgement, ...]) -> dict[str, str] | None:
    best = next((item.defence for item in advice if item.defence is not None), None)
    judgement = next((j for j in judgements if best is not None and j.defence == best), None)
    if judgement is None or judgement.worst.loss is None or judgement.tone != "stops":
        return None
    loss = 100 * judgement.worst.loss.value
    label = f"points of accuracy: the price of {name_of(judgement.defence)}"
    return {"figure": f"{loss + 0.0:.1f}".replace("-0.0", "0.0"), "label": label, "tone": "stops"}


def advice_section(page: Page) -> Section | None:
    """Say which defence to take at which price."""
    if not page.advice:
        return None
    values = {"advice": page.advice, "seeds": page.summary.seeds}
    return Section("advice", "Which defence, at what price", "advice.html", values)


def flags_section(page: Page) -> Section:
    """List every reason to doubt the audit, and how far it got."""
    counts = {status.value: page.summary.counts.get(status, 0) for status in Status}
    return Section(
        "doubts", "Reasons to doubt this audit", "flags.html", {"flags": page.flags, "counts": counts, "missing": page.missing}
    )


def glossary_section(page: Page) -> Section:
    """Explain the words that the numbers need."""
    return Section("words", "How to read the numbers", "glossary.html", {"threshold": page.summary.threshold})
