"""What an audit found, on the terminal: a sentence, the verdict, the advice, a table, and every reason to doubt it."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from leaktight.cli.audit_table import table
from leaktight.cli.text_table import print_item, print_lines, print_text
from leaktight.core.defence import is_undefended
from leaktight.core.display import capital, join_words
from leaktight.core.record import Record, Status
from leaktight.findings.advice import advise
from leaktight.findings.characteristic import leading_curves
from leaktight.findings.column import interval
from leaktight.findings.display import name_of
from leaktight.findings.flags import raise_flags
from leaktight.findings.headline import headline_of
from leaktight.findings.kind import leak_kinds
from leaktight.findings.layer_risk import profiles_of
from leaktight.findings.layer_words import CAVEAT, most_telling
from leaktight.findings.rows import Row
from leaktight.findings.summary import AuditSummary, summarise
from leaktight.findings.threats import SOURCE, attacks_by_letter
from leaktight.findings.verdict import Judgement, Word

WIDE = 160
STYLES: dict[Word, str] = {
    "refuted": "bold red",
    "leaks": "bold red",
    "reduced": "bold yellow",
    "bounded": "bold",
    "not broken": "bold",
    "unknown": "bold dim",
    "useless": "bold dim",
}
"""How the words are shown. Nothing is green on the strength of attacks alone."""


def show(
    records: Sequence[Record],
    scenarios: Sequence[str] = (),
    console: Console | None = None,
    summary: AuditSummary | None = None,
    caveats: Sequence[str] = (),
) -> None:
    """Print a sentence, the verdict, the advice, the table, the doubts, and what was refused or failed.

    Args:
        records: what was measured.
        scenarios: the names of the plan's scenarios, in its order; one alone is not named.
        console: where to print; by default standard output.
        summary: that of the records, if it is known already.
        caveats: those of the plan.
    """
    summary = summary or summarise(records)
    where = console or Console()
    if not where.is_terminal:
        # A file has no width; cut columns would lose numbers.
        where.width = WIDE
    print_text(where, headline_of(summary), style="bold")
    if len(scenarios) > 1:
        _print(where, "Scenarios", [f"{number}: {name}" for number, name in enumerate(scenarios, start=1)])
    show_verdict(where, summary)
    _print(where, "Advice", [f"{advice.question} {advice.sentence}" for advice in advise(summary)])
    print_lines(where, table(summary.tabled, where.width))
    for heading, lines in {
        f"Threat models ({SOURCE})": attacks_by_letter(records),
        **remarks(summary),
        "Searches that failed, of all messages (a better search may find more there)": failed_searches(summary.rows),
        "CAP (usefulness times the attacker's error, over strengths; higher is better)": caps(summary),
        "Where the leak sits": layers(records, summary),
        "Reasons to doubt this audit": [flag.sentence for flag in raise_flags(records, caveats)],
        "Refused": reasons(records, Status.REFUSED),
        "Failed": reasons(records, Status.FAILED),
    }.items():
        _print(where, heading, lines)


def _print(where: Console, heading: str, lines: Sequence[str | Text]) -> None:
    if lines:
        where.print(f"\n{heading}:")
        for line in lines:
            print_item(where, line)


def show_verdict(where: Console, summary: AuditSummary) -> None:
    """Print a sentence for each judgement, kinds of leak apart; the word in its colour."""
    kinds = list(dict.fromkeys(judgement.kind for judgement in summary.judgements))
    if not kinds:
        _print(where, "Verdict", summary.verdict)
    for kind in kinds:
        said = [
            _colour(judgement, sentence)
            for judgement, sentence in zip(summary.judgements, summary.verdict, strict=True)
            if judgement.kind == kind
        ]
        _print(where, f"Verdict, {kind.heading.lower()}" if len(kinds) > 1 else "Verdict", said)


def _colour(judgement: Judgement, sentence: str) -> Text:
    lead, word, rest = sentence.partition(f": {judgement.status}.")
    return Text.assemble(lead, (word, "bold green" if judgement.is_good else STYLES[judgement.status]), rest)


def words_of(summary: AuditSummary) -> list[str]:
    """Return a line for each judgement: the kind of leak if there are several, the defence, and the word.

    Example:
        >>> words_of(summarise([]))
        ['Nothing was measured, so nothing can be said.']
    """
    kinds, scenarios = ({getattr(one, of) for one in summary.judgements} for of in ("kind", "scenario"))
    lines = []
    for one in summary.judgements:
        place = [f"scenario {one.scenario}"] if len(scenarios) > 1 else []
        place += [one.kind.heading.lower()] if len(kinds) > 1 else []
        lines.append(f"{capital(', '.join([*place, name_of(one.defence)]))}: {one.status}")
    return lines or list(summary.verdict)


def remarks(summary: AuditSummary) -> dict[str, list[str]]:
    """Return what each kind of leak adds to its verdicts, line by line below a heading."""
    return {
        heading: list(lines)
        for kind in leak_kinds()
        for heading, lines in kind.remarks([one for one in summary.judgements if one.kind == kind]).items()
    }


def failed_searches(rows: Sequence[Row]) -> list[str]:
    """Return a line for each attack and setting of which searches failed: what these did not find says nothing."""
    found: dict[str, dict[str, list[str]]] = {}
    for row in rows:
        if row.failures is not None and row.failures.value > 0:
            found.setdefault(f"{row.attack} ({row.setting})", {}).setdefault(row.searches, []).append(
                name_of(row.defence)
            )
    return [
        f"{where}: {'; '.join(f'{searches} under {join_words(names)}' for searches, names in many.items())}"
        for where, many in found.items()
    ]


def caps(summary: AuditSummary) -> list[str]:
    """Return a line for each defence that was measured at several strengths: how much use it leaves per protection."""
    lines = []
    for curve in leading_curves(summary.curves, summary.judgements):
        found = ", ".join(f"{aim} {interval(cap, 2)}" for aim, cap in curve.caps.items())
        why = curve.spots[0].row.unpriced
        if why:
            lines.append(f"{capital(curve.family)}, {len(curve.spots)} strengths: none, {why}")
        elif found:
            lines.append(
                f"{capital(curve.family)}, {len(curve.spots)} strengths: {found} ({curve.attack}; "
                f"{curve.spots[0].row.setting})"
            )
    return lines


def layers(records: Sequence[Record], summary: AuditSummary) -> list[str]:
    """Return for each setting without defence in which layers were measured which of them gives most away by itself."""
    bare = [profile for profile in profiles_of(records, summary.rows) if is_undefended(profile.place.defence)]
    lead = [f"{capital(profile.place.setting)}: " if len(bare) > 1 else "" for profile in bare]
    found = [f"{where}{most_telling(one.layers, one.question)}" for where, one in zip(lead, bare, strict=True)]
    return [*found, CAVEAT] if found else []


def reasons(records: Sequence[Record], wanted: Status) -> list[str]:
    """Return each different reason once, with how many cells it befell."""
    counts: dict[str, int] = {}
    for record in records:
        if record.status is wanted:
            counts[record.reason] = counts.get(record.reason, 0) + 1
    return [f"{count} {'cell' if count == 1 else 'cells'}: {reason}" for reason, count in counts.items()]
