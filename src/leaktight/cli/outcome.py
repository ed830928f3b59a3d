"""What an audit found, on the terminal: a short table, the verdict, and every reason to doubt it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from rich.console import Console
from rich.table import Table
from rich.text import Text

from leaktight.core.defence import is_undefended
from leaktight.core.display import capital, listed
from leaktight.core.metric import Reading
from leaktight.core.probe import DIVERGED, OBJECTIVE
from leaktight.core.record import Record, Status
from leaktight.findings.advice import advise
from leaktight.findings.characteristic import leading
from leaktight.findings.display import name_of, setting
from leaktight.findings.flags import raise_flags
from leaktight.findings.label_leak import TAIL, tells_labels
from leaktight.findings.layer_risk import of_layers_alone, profiles_of
from leaktight.findings.layer_words import CAVEAT, most_telling
from leaktight.findings.passes import passes_of
from leaktight.findings.property_leak import tells_property
from leaktight.findings.rows import LABELS, PSNR, RECOGNISED, Row
from leaktight.findings.summary import Summary, summarise
from leaktight.findings.threats import SOURCE, attacks_by_letter
from leaktight.findings.utility import ACCURACY, utility_name
from leaktight.findings.verdict import Judgement, Verdict

WIDE = 160
NOTHING = "-"
STYLES: dict[Verdict, str] = {
    "refuted": "bold red",
    "leaks": "bold red",
    "reduced": "bold yellow",
    "bounded": "bold",
    "not broken": "bold",
    "unknown": "bold dim",
}
"""How the words are shown. Nothing is green on the strength of attacks alone."""


def show(
    records: Sequence[Record],
    scenarios: Sequence[str] = (),
    console: Console | None = None,
    summary: Summary | None = None,
) -> None:
    """Print the verdict, the advice, the table, the doubts, and what was refused or failed.

    Args:
        records: what was measured.
        scenarios: the names of the plan's scenarios, in its order; one alone is not named.
        console: where to print; by default standard output.
        summary: that of the records, if it is known already.
    """
    summary = summary or summarise(records)
    where = console or Console()
    if not where.is_terminal:
        # A file has no width; cut columns would lose numbers.
        where.width = WIDE
    if len(scenarios) > 1:
        _print(where, "Scenarios", [f"{number}: {name}" for number, name in enumerate(scenarios, start=1)])
    show_verdict(where, summary)
    _print(where, "Advice", [f"{advice.question} {advice.sentence}" for advice in advise(summary)])
    where.print()
    where.print(table(summary.rows))
    for heading, lines in {
        f"Threat models ({SOURCE})": attacks_by_letter(records),
        "Labels over passes (AUC of the strongest attack; what features alone give is no leak of a message)": passes(summary),
        "Searches that failed, of all messages (a better search may find more there)": failed_searches(summary.rows),
        "CAP (usefulness times the attacker's error, over strengths; higher is better)": caps(summary),
        "Where the leak sits": layers(records, summary),
        "Reasons to doubt this audit": [flag.sentence for flag in raise_flags(records)],
        "Refused": reasons(records, Status.REFUSED),
        "Failed": reasons(records, Status.FAILED),
    }.items():
        _print(where, heading, lines)


def _print(where: Console, heading: str, lines: Sequence[str | Text]) -> None:
    if lines:
        where.print(f"\n{heading}:")
        for line in lines:
            where.print(Text.assemble("- ", line), highlight=False, soft_wrap=not where.is_terminal)


def show_verdict(where: Console, summary: Summary) -> None:
    """Print a sentence for each judgement, kinds of leak apart; the word in its colour."""
    kinds = {judgement.kind.name: judgement.kind for judgement in summary.judgements}
    if not kinds:
        _print(where, "Verdict", summary.verdict)
    for kind in kinds.values():
        said = [
            _coloured(judgement, sentence)
            for judgement, sentence in zip(summary.judgements, summary.verdict, strict=True)
            if judgement.kind is kind
        ]
        _print(where, f"Verdict, {kind.heading.lower()}" if len(kinds) > 1 else "Verdict", said)


def _coloured(judgement: Judgement, sentence: str) -> Text:
    lead, word, rest = sentence.partition(f": {judgement.verdict}.")
    return Text.assemble(lead, (word, "bold green" if judgement.is_good else STYLES[judgement.verdict]), rest)


def passes(summary: Summary) -> list[str]:
    """Return a line for each verdict that rests on scores added up over passes; the report has those of all attacks."""
    found = ((judgement, passes_of(judgement.worst)) for judgement in summary.judgements if judgement.kind.name == "labels")
    return [f"{capital(name_of(judgement.defence))}, {one}" for judgement, one in found if one is not None]


def table(rows: Sequence[Row]) -> Table:
    """Return the rows of a summary as a table; a setting that all rows share is said below it, to leave room for names."""
    found = Table(caption_justify="left")
    several = any(row.among > 1 for row in rows)
    if several:
        found.add_column("Scenario", justify="right")
    for name in ("Defence", "Attack"):
        found.add_column(name, overflow="fold")
    utilities = dict.fromkeys(utility_name(row.utility) for row in rows if row.utility is not None)
    utility = capital(" or ".join(utilities) or utility_name(None))
    rows = [row for row in rows if not of_layers_alone(row)]
    leaks = [leak for leak in (_IMAGES, _LABELS, _PROPERTY, _SAMPLES, _UNGRADED) if any(map(leak.about, rows))] or [_IMAGES]
    settings = {(row.batch_size, row.stage) for row in rows}
    if len(settings) == 1:
        found.caption = capital(setting(*next(iter(settings))))
    places = ("Batch", "Stage") if len(settings) > 1 else ()
    for name in (*places, *(title for leak in leaks for title in leak.titles), utility):
        found.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        found.add_row(
            *([str(row.scenario)] if several else []),
            name_of(row.defence),
            row.attack,
            *((str(row.batch_size), row.stage) if places else ()),
            *(text for leak in leaks for text in leak.texts(row)),
            _use(row.utility),
        )
    return found


def _of_images(row: Row) -> tuple[str, str, str]:
    psnr, labels = row.reading(PSNR, "raw"), row.reading(LABELS)
    return (
        interval(psnr) if row.counts.get(Status.DONE) else status(row),
        NOTHING if psnr is None or psnr.chance is None else f"{psnr.chance:.1f}",
        NOTHING if labels is None else f"{1 - labels.value:.0%}",
    )


def _of_labels(row: Row) -> tuple[str, str, str]:
    """Return what the attack got at the layer that tells it most."""
    leak = row.leak if tells_labels(row.leak) else None
    tail = next((r for r in row.readings if r.name == TAIL and leak and r.layer == leak.layer), None)
    return (
        interval(leak, 2) if row.counts.get(Status.DONE) else status(row),
        NOTHING if leak is None or leak.chance is None else f"{leak.chance:.2f}",
        interval(tail, 2).partition(" ")[0],
    )


def _of_property(row: Row) -> tuple[str, str, str]:
    """Return how well the property is told by all layers together, or by what the row is judged by, and by the best layer alone."""
    leak = row.leak if tells_property(row.leak) else None
    single = [r for r in row.readings if tells_property(r) and r.layer is not None]
    best = max(single, key=lambda r: r.value, default=None)
    return (
        interval(leak, 2) if row.counts.get(Status.DONE) else status(row),
        NOTHING if leak is None or leak.chance is None else f"{leak.chance:.2f}",
        NOTHING if best is None else f"{best.layer} {best.value:.2f}",
    )


def _of_samples(row: Row) -> tuple[str, str, str]:
    """Return how many made-up pictures show the class that was asked for, and how many any class of the attacked."""
    shown = row.reading(RECOGNISED)
    return (
        interval(shown, 2) if row.counts.get(Status.DONE) else status(row),
        NOTHING if shown is None or shown.chance is None else f"{shown.chance:.2f}",
        interval(row.any_class, 2).partition(" ")[0],
    )


def _of_nobody(row: Row) -> tuple[str, str, str]:
    """Return what the attacker itself knows of its success, where nobody knows the truth."""
    left, lost = row.reading(OBJECTIVE), row.reading(DIVERGED)
    if left is None or lost is None:
        return (status(row), NOTHING, NOTHING)
    return f"{left.value:.3g}", str(lost.n), f"{lost.value:.0f}"


class Leak(NamedTuple):
    """The columns of one kind of leak: their titles, whether a row is about it, and its texts."""

    titles: tuple[str, str, str]
    about: Callable[[Row], bool]
    texts: Callable[[Row], tuple[str, str, str]]


_IMAGES = Leak(
    ("PSNR in dB (95 %)", "Chance", "Labels"),
    lambda row: row.leak is not None and not (tells_labels(row.leak) or tells_property(row.leak) or row.reading(RECOGNISED)),
    _of_images,
)
_SAMPLES = Leak(
    ("Pictures of the class (95 %)", "Chance", "Of any class, worst training"),
    lambda row: row.reading(RECOGNISED) is not None,
    _of_samples,
)
_LABELS = Leak(("Leak AUC (95 %)", "Chance", "95 % quantile"), lambda row: tells_labels(row.leak), _of_labels)
_UNGRADED = Leak(
    ("Objective, not graded", "Messages", "Diverged"),
    lambda row: row.leak is None and row.reading(OBJECTIVE) is not None,
    _of_nobody,
)
_PROPERTY = Leak(("Property AUC (95 %)", "Chance", "Layer that tells most"), lambda row: tells_property(row.leak), _of_property)


def _use(utility: Reading | None) -> str:
    if utility is None:
        return NOTHING
    return f"{utility.value:.1%}" if utility.name == ACCURACY else f"{utility.value:.3f}"


def failed_searches(rows: Sequence[Row]) -> list[str]:
    """Return a line for each attack and setting of which searches failed: what these did not find says nothing."""
    found: dict[str, dict[str, list[str]]] = {}
    for row in rows:
        if row.failed is not None and row.failed.value > 0:
            found.setdefault(f"{row.attack} ({row.setting})", {}).setdefault(row.searches, []).append(name_of(row.defence))
    return [
        f"{where}: {'; '.join(f'{searches} under {listed(names)}' for searches, names in many.items())}"
        for where, many in found.items()
    ]


def caps(summary: Summary) -> list[str]:
    """Return a line for each defence that was measured at several strengths: how much use it leaves per protection."""
    lines = []
    for curve in leading(summary.curves, summary.judgements):
        found = ", ".join(f"{aim} {interval(cap, 2)}" for aim, cap in curve.caps.items())
        why = curve.spots[0].row.unpriced
        if why:
            lines.append(f"{capital(curve.family)}, {len(curve.spots)} strengths: none, {why}")
        elif found:
            lines.append(
                f"{capital(curve.family)}, {len(curve.spots)} strengths: {found} ({curve.attack}; {curve.spots[0].row.setting})"
            )
    return lines


def layers(records: Sequence[Record], summary: Summary) -> list[str]:
    """Return for each setting without defence in which layers were measured which of them gives most away by itself."""
    bare = [profile for profile in profiles_of(records, summary.rows) if is_undefended(profile.place.defence)]
    lead = [f"{capital(profile.place.setting)}: " if len(bare) > 1 else "" for profile in bare]
    found = [f"{where}{most_telling(one.layers, one.place.asked)}" for where, one in zip(lead, bare, strict=True)]
    return [*found, CAVEAT] if found else []


def interval(reading: Reading | None, digits: int = 1) -> str:
    """Show a number with its interval, if it has one."""
    if reading is None:
        return NOTHING
    known = reading.low is not None and reading.high is not None
    around = f" ({reading.low:.{digits}f} to {reading.high:.{digits}f})" if known else ""
    return f"{reading.value:.{digits}f}{around}"


def status(row: Row) -> str:
    """Say why a row has no numbers."""
    return " and ".join(found.value for found in (Status.REFUSED, Status.FAILED) if row.counts.get(found)) or NOTHING


def reasons(records: Sequence[Record], wanted: Status) -> list[str]:
    """Return each different reason once, with how many cells it befell."""
    counts: dict[str, int] = {}
    for record in records:
        if record.status is wanted:
            counts[record.reason] = counts.get(record.reason, 0) + 1
    return [f"{count} {'cell' if count == 1 else 'cells'}: {reason}" for reason, count in counts.items()]
