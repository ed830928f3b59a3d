"""Findings: the verdict, the advice and the doubts, in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from leaktight.audit.label_leak import LEAK_AUC, tells_labels
from leaktight.audit.property_leak import UNNAMED, tells_property
from leaktight.audit.rows import PSNR, STATEMENT
from leaktight.audit.utility import utility_name
from leaktight.audit.verdict import Judgement
from leaktight.audit.words import capital, counted, name_of, points, undefended
from leaktight.core.record import Status
from leaktight.metrics.search_gap import SEARCH_FAILED
from leaktight.report.page import Page, Section

BADGES = {
    "unbroken": "not broken by the attacks tried",
    "reduces": "leaks less",
    "leaks": "leaks",
    "unknown": "not shown",
}
LAYERED = ("property_auc", "v_information", "sensitivity", "mutual_information")
"""How the names of readings begin that are explained where they occur."""


def verdict_section(page: Page) -> Section:
    """Say what leaks and what each defence does about it."""
    summary = page.summary
    judged = [_judged(judgement) for judgement in summary.judgements]
    rest = summary.verdict[len(judged) :] if judged else summary.verdict
    values = {
        "tiles": tiles(page),
        "judged": judged,
        "rest": rest,
        "threshold": summary.threshold if _shows(page, STATEMENT) else None,
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
    judgements = page.summary.judgements
    several = len({j.scenario for j in judgements}) > 1
    bare = max((j for j in judgements if undefended(j.defence) and j.worst.recognised), key=_severity, default=None)
    if bare is not None and bare.worst.recognised is not None:
        where = f" in scenario {bare.scenario}, where most are" if several else ""
        label = f"images recognised without defence{where}"
        found.append({"figure": counted(bare.worst.recognised), "label": label, "tone": bare.tone})
    told = max((j for j in judgements if undefended(j.defence) and tells_labels(j.worst.leak)), key=_severity, default=None)
    if told is not None and told.worst.leak is not None:
        where = f" in scenario {told.scenario}, where most is" if several else ""
        label = f"AUC, how well labels are told without defence{where}"
        found.append({"figure": f"{told.worst.leak.value:.2f}", "label": label, "tone": told.tone})
    asked = max((j for j in judgements if undefended(j.defence) and tells_property(j.worst.leak)), key=_severity, default=None)
    if asked is not None and asked.worst.leak is not None:
        where = f" in scenario {asked.scenario}, where most is" if several else ""
        label = f"AUC, how well it is told without defence whether examples {asked.worst.asked or UNNAMED}{where}"
        found.append({"figure": f"{asked.worst.leak.value:.2f}", "label": label, "tone": asked.tone})
    defences = _by_defence(judgements)
    if defences:
        unbroken = sum(all(j.tone == "unbroken" for j in group) for group in defences)
        label = f"defences not broken by the attacks tried{', in every scenario' if several else ''}"
        found.append({"figure": f"{unbroken} of {len(defences)}", "label": label, "tone": "unbroken" if unbroken else "leaks"})
    cheapest = _cheapest(judgements)
    if cheapest is not None:
        found.append(cheapest)
    doubts = sum(flag.severity == "doubt" for flag in page.flags)
    label = "reason to doubt these numbers" if doubts == 1 else "reasons to doubt these numbers"
    found.append({"figure": str(doubts or "no"), "label": label, "tone": "reduces" if doubts else "unknown"})
    return found


def _shows(page: Page, name: str) -> bool:
    """Return whether anything of this name was measured."""
    return any(reading.name == name for row in page.summary.rows for reading in row.readings)


def _severity(judgement: Judgement) -> tuple[float, ...]:
    return judgement.worst.severity


def _by_defence(judgements: Sequence[Judgement]) -> list[list[Judgement]]:
    """Return what was found about each defence, in all scenarios in which it was measured."""
    groups: dict[str, list[Judgement]] = {}
    for judgement in judgements:
        if not undefended(judgement.defence):
            groups.setdefault(judgement.defence.key, []).append(judgement)
    return list(groups.values())


def _cheapest(judgements: Sequence[Judgement]) -> dict[str, str] | None:
    """Return the price of the cheapest defence that no attack tried broke in any scenario, each priced where it costs most."""
    scenarios = {j.scenario for j in judgements}
    if any(undefended(j.defence) and j.worst.useless for j in judgements):
        return None
    unbroken = [
        group
        for group in _by_defence(judgements)
        if {j.scenario for j in group} == scenarios and all(j.tone == "unbroken" and not j.worst.useless for j in group)
    ]
    priced = [
        max(((j.worst.loss, j) for j in group if j.worst.loss is not None), key=lambda pair: pair[0].value)
        for group in unbroken
        if all(j.worst.loss is not None for j in group)
    ]
    if not priced:
        return None
    loss, dearest = min(priced, key=lambda pair: pair[0].value)
    most = f", at most, in scenario {dearest.scenario}" if len(scenarios) > 1 else ""
    label = f"points of {utility_name(loss)}: the price of {name_of(dearest.defence)}{most}, the cheapest not broken"
    return {"figure": points(loss.value), "label": label, "tone": "unbroken"}


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
    shown = tuple(reading.name for row in page.summary.rows for reading in row.readings)
    layered = [kind for kind in LAYERED if any(name.startswith(kind) for name in shown)]
    return Section(
        "words",
        "How to read the numbers",
        "glossary.html",
        {
            "threshold": page.summary.threshold,
            "curves": page.summary.curves,
            "images": _shows(page, PSNR) or not (_shows(page, LEAK_AUC) or layered),
            "labels": _shows(page, LEAK_AUC),
            "searches": _shows(page, SEARCH_FAILED),
            "layered": layered,
        },
    )
