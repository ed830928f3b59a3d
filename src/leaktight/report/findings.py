"""Findings: the verdict, the advice and the doubts, in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from leaktight.core.defence import is_undefended
from leaktight.core.display import capital, points
from leaktight.core.record import Status
from leaktight.findings.bound import TELLING
from leaktight.findings.display import name_of
from leaktight.findings.evidence import MOST_FAILED
from leaktight.findings.kind import leak_kinds
from leaktight.findings.sentence import brief_of, reasons_of
from leaktight.findings.utility import ACCURACY, utility_name
from leaktight.findings.verdict import Judgement
from leaktight.metrics.search_gap import SEARCH_FAILED
from leaktight.report.page import Page, Section

LAYERED = ("v_information", "sensitivity", "mutual_information")
"""How the names of readings begin that are explained where they occur."""
LEAKY = ("refuted", "leaks", "reduced")
"""Verdicts by which something was read."""


def verdict_section(page: Page) -> Section:
    """Say what leaks and what each defence does about it."""
    summary = page.summary
    several = len({judgement.scenario for judgement in summary.judgements}) > 1
    groups: dict[str, list[dict[str, Any]]] = {}
    for judgement in summary.judgements:
        where = f", scenario {judgement.scenario}" if several else ""
        groups.setdefault(f"{judgement.kind.heading}{where}", []).append(_judgement(judgement))
    values = {
        "tiles": tiles(page),
        "groups": groups,
        "rest": () if groups else summary.verdict,
        "notes": [note for kind in leak_kinds() if (note := kind.verdict_note(summary.rows, page.records))],
        "seeds": summary.seeds,
        "missing": page.missing,
    }
    return Section("verdict", "Verdict", "verdict.html", values)


def tone_of(judgement: Judgement) -> str:
    """Return the style of a judgement: its word, and `good` for a bound that implies something."""
    return "good" if judgement.is_good else judgement.verdict.replace(" ", "-")


def _judgement(judgement: Judgement) -> dict[str, Any]:
    bar = judgement.kind.bar(judgement.worst)
    return {
        "name": capital(name_of(judgement.defence)),
        "tone": tone_of(judgement),
        "badge": judgement.verdict,
        "useless": judgement.worst.useless,
        "brief": brief_of(judgement),
        "sentence": reasons_of(judgement),
        "price": _price(judgement),
        "share": None if bar is None else bar[0],
        "luckier": judgement.luckiest.value if bar is not None and judgement.luckiest is not None else None,
        "count": "" if bar is None else bar[1],
    }


def _price(judgement: Judgement) -> str:
    """Return what a defence costs, in a few words; nothing where no price is told."""
    loss = judgement.worst.loss
    if is_undefended(judgement.defence) or loss is None or judgement.beside:
        return ""
    around = "" if loss.low is None or loss.high is None else f" ({points(loss.low)} to {points(loss.high)})"
    return f"{points(loss.value)}{around} points of {utility_name(loss)}"


def tiles(page: Page) -> list[dict[str, str]]:
    """Return the few figures that a hurried reader takes away."""
    judgements = page.summary.judgements
    several = len({j.scenario for j in judgements}) > 1
    kinds = list(dict.fromkeys(j.kind for j in judgements if not j.kind.unjudged))
    found = []
    for kind in kinds:
        bare = max(
            (j for j in judgements if is_undefended(j.defence) and j.kind == kind),
            key=lambda j: kind.severity(j.worst),
            default=None,
        )
        if bare is not None:
            where = f" in scenario {bare.scenario}, where most is read" if several else ""
            found.append(
                {
                    "figure": kind.short(bare.worst),
                    "label": f"{kind.measure(bare.worst)} without defence{where}",
                    "tone": bare.verdict,
                }
            )
    for kind in kinds:
        found += _counts([j for j in judgements if j.kind == kind], several)
    cheapest = _cheapest(judgements)
    if cheapest is not None:
        found.append(cheapest)
    doubts = sum(flag.severity == "doubt" for flag in page.flags)
    label = "reason to doubt these numbers" if doubts == 1 else "reasons to doubt these numbers"
    found.append({"figure": str(doubts or "no"), "label": label, "tone": "doubt" if doubts else "unknown"})
    return found


def _counts(judgements: Sequence[Judgement], several: bool) -> list[dict[str, str]]:
    """Return how many defences leak, in whole or in part, and how many are bounded or not broken, in every scenario."""
    defences = _by_defence(judgements)
    if not defences:
        return []
    leaky = sum(any(j.verdict in LEAKY for j in group) for group in defences)
    safe = sum(all(j.is_good or j.verdict == "not broken" for j in group) for group in defences)
    everywhere = ", in every scenario" if several else ""
    noun, total = judgements[0].kind.noun, len(defences)
    told = [
        {
            "figure": f"{leaky} of {total}",
            "label": f"defences leak {noun}, in whole or in part",
            "tone": "leaks" if leaky else "unknown",
        }
    ]
    if safe:
        label = f"defences bounded or not broken ({noun}){everywhere}"
        told.append({"figure": f"{safe} of {total}", "label": label, "tone": "not-broken"})
    return told


def _by_defence(judgements: Sequence[Judgement]) -> list[list[Judgement]]:
    """Return what was found about each defence, in all scenarios in which it was measured."""
    groups: dict[str, list[Judgement]] = {}
    for judgement in judgements:
        if not is_undefended(judgement.defence):
            groups.setdefault(judgement.defence.key, []).append(judgement)
    return list(groups.values())


def _cheapest(judgements: Sequence[Judgement]) -> dict[str, str] | None:
    """Return the price of the cheapest defence that is bounded or not broken in every scenario.

    Each defence is priced where it costs most. Only the first kind of leak counts, which most audits are about.
    """
    kind = next((j.kind for j in judgements), None)
    judgements = [j for j in judgements if j.kind == kind]
    scenarios = {j.scenario for j in judgements}
    if any(is_undefended(j.defence) and j.worst.useless for j in judgements):
        return None
    safe = [
        group
        for group in _by_defence(judgements)
        if {j.scenario for j in group} == scenarios and all(j.may_be_advised and j.verdict != "reduced" for j in group)
    ]
    priced = [
        max(((j.worst.loss, j) for j in group if j.worst.loss is not None), key=lambda pair: pair[0].value)
        for group in safe
        if all(j.worst.loss is not None for j in group)
    ]
    if not priced:
        return None
    loss, dearest = min(priced, key=lambda pair: pair[0].value)
    most = f", at most, in scenario {dearest.scenario}" if len(scenarios) > 1 else ""
    label = (
        f"points of {utility_name(loss)}: the price of {name_of(dearest.defence)}{most}, "
        "the cheapest bounded or not broken"
    )
    return {"figure": points(loss.value), "label": label, "tone": "not-broken"}


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
            "verdicts": {judgement.verdict for judgement in page.summary.judgements},
            "telling": TELLING,
            "most_failed": MOST_FAILED,
        },
    )
