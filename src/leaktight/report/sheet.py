"""The sheet: an audit on one page, for someone who decides and reads no more.

The report begins with it, and it is a file of its own as PDF: both say the same.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from leaktight.captures import AsCaptured
from leaktight.core.defence import is_undefended
from leaktight.core.display import capital, count, percent
from leaktight.core.metric import Reading, quantity_of
from leaktight.core.scenario import Scenario
from leaktight.findings.advice import Advice
from leaktight.findings.choice import rank_of
from leaktight.findings.display import family_of, name_of
from leaktight.findings.headline import headline_of
from leaktight.findings.kind import Gauge, LeakKind
from leaktight.findings.sentence import price_words, reasons_of
from leaktight.findings.utility import utility_name
from leaktight.findings.verdict import Judgement
from leaktight.report.page import Page

MOST_DOUBTS = 3
NONE = "\u2013"
MEANINGS = {
    "refuted": "a claimed epsilon lies below its measured lower bound",
    "leaks": "at least half of what is read without the defence is read with it",
    "reduced": "less is read, but more than guessing explains",
    "bounded": "no attack tried got through, and an accounted epsilon limits what any can; green only if tightly",
    "not broken": "no attack tried got through, though two of different principles work without the defence",
    "unknown": "the audit does not show whether it protects",
    "useless": "the model learned nothing under it",
}
"""What the words of the verdict mean, in a line each."""
_ORDER = ("bounded", "not broken", "reduced", "unknown", "leaks", "refuted", "useless")


@dataclasses.dataclass(frozen=True)
class VerdictLine:
    """What was found about one defence and one kind of leak.

    Args:
        name: the defence.
        tone: the class that colours it: its word, and `good` for a bound that implies something.
        word: what is shown as the verdict.
        useless: whether the model learned nothing.
        leak: what the strongest attack got, as a figure.
        gauge: the same as a bar; None if it is no share.
        chance: what guessing gets, with its name; empty if it is not known.
        attack: the strongest attack.
        price: what the defence costs, in a few words.
        sentence: what the word rests on.
    """

    name: str
    tone: str
    word: str
    useless: bool
    leak: str
    gauge: Gauge | None
    chance: str
    attack: str
    price: str
    sentence: str


@dataclasses.dataclass(frozen=True)
class VerdictGroup:
    """The defences against one kind of leak in one scenario.

    Args:
        heading: which leak, and where if there are several scenarios.
        measure: what its figures count.
        unit: what prices are counted in; empty where there are none.
        lines: no defence first, then the best, and those under which the model is useless last.
    """

    heading: str
    measure: str
    unit: str
    lines: tuple[VerdictLine, ...]


@dataclasses.dataclass(frozen=True)
class Sheet:
    """An audit on one page.

    Args:
        title: that of the plan.
        headline: what was found, in a sentence or two.
        groups: a table for each kind of leak.
        advice: which defence at which price.
        doubts: the first reasons to doubt the audit.
        more_doubts: how many more there are.
        scope: what was tried, in a line.
        words: the words that occur, with their meanings.
    """

    title: str
    headline: str
    groups: tuple[VerdictGroup, ...]
    advice: tuple[Advice, ...]
    doubts: tuple[str, ...]
    more_doubts: int
    scope: str
    words: dict[str, str]

    @classmethod
    def of(cls, page: Page) -> Sheet:
        """Return the sheet of a page."""
        doubts = [flag.sentence for flag in page.flags if flag.severity == "doubt"]
        groups = tuple(_groups(page))
        shown = {line.word for group in groups for line in group.lines}
        return cls(
            title=page.plan.title,
            headline=headline_of(page.summary),
            groups=groups,
            advice=page.advice,
            doubts=tuple(doubts[:MOST_DOUBTS]),
            more_doubts=max(0, len(doubts) - MOST_DOUBTS),
            scope=scope_of(page),
            words={word: meaning for word, meaning in MEANINGS.items() if word in shown},
        )


def scope_of(page: Page) -> str:
    """Say what was tried: defences, attacks, messages, seeds and cells."""
    judgements = page.summary.judgements
    defences = {j.defence.key: j.defence for j in judgements if not is_undefended(j.defence)}
    declared = [defence for defence in defences.values() if not isinstance(defence, AsCaptured)]
    families = count(len({family_of(defence) for defence in declared}), "defence")
    settings = f"{families} in {len(declared)} settings" if len(declared) > int(families.split()[0]) else families
    attacks = {part.attack for row in page.summary.rows if row.kind for part in row.attacks}
    measured = sum(page.summary.counts.values())
    parts = [
        *([settings] if declared else []),
        count(len(attacks), "attack"),
        count(len(page.summary.seeds), "seed"),
        count(measured, "cell"),
    ]
    missing = f"; {count(page.missing, 'planned cell')} not measured yet" if page.missing else ""
    return f"{capital(', '.join(parts))}{missing}."


def _groups(page: Page) -> list[VerdictGroup]:
    judgements = page.summary.judgements
    names = scenario_names(page)
    several = len({one.scenario for one in judgements}) > 1
    groups: dict[tuple[int, str], list[Judgement]] = {}
    for one in judgements:
        groups.setdefault((one.scenario, one.kind.heading), []).append(one)
    return [
        VerdictGroup(
            heading=f"{heading}, scenario {scenario} ({names[scenario]})" if several else heading,
            measure=judged[0].kind.measure(judged[0].worst),
            unit=_unit(judged),
            lines=tuple(map(_line, sorted(judged, key=_place))),
        )
        for (scenario, heading), judged in groups.items()
    ]


def scenario_names(page: Page) -> dict[int, str]:
    """Return what the plan calls each scenario, by the number that the report gives it."""
    by_key = {scenario.key: scenario_name(name, scenario) for name, scenario in page.plan.scenarios.items()}
    keys = dict.fromkeys(record.cell.scenario.key for record in page.records if record.cell.purpose == "measure")
    return {number: by_key.get(key, str(number)) for number, key in enumerate(keys, start=1)}


def scenario_name(name: str, scenario: Scenario) -> str:
    """Return what a plan calls a scenario; where that is a number, its kind."""
    return scenario.kind if name.isdecimal() else name


def _place(judgement: Judgement) -> tuple[object, ...]:
    """Return what lines are sorted by: no defence, then the best word, and of one word the least leak."""
    severity = judgement.kind.severity(judgement.worst)
    # An epsilon that promises too little says no more than the attacks do.
    word = ("bounded", "not broken", "unknown")[rank_of(judgement)] if judgement.status == "bounded" else None
    return not is_undefended(judgement.defence), _ORDER.index(word or judgement.status), severity


def _line(judgement: Judgement) -> VerdictLine:
    kind, reading = judgement.kind, judgement.reading
    return VerdictLine(
        name=capital(name_of(judgement.defence)),
        tone=tone_of(judgement),
        word=judgement.status,
        useless=judgement.worst.useless,
        leak=kind.short(judgement.worst),
        gauge=kind.gauge(judgement.worst),
        chance=_chance(kind, reading, kind.gauge(judgement.worst)),
        attack=attack_text(judgement),
        price=price_text(judgement),
        sentence=reasons_of(judgement),
    )


def _chance(kind: LeakKind, reading: Reading | None, gauge: Gauge | None) -> str:
    """Return what guessing gets, as a figure of the same kind as the leak with its name; nothing if it is not known."""
    if reading is None or reading.chance is None:
        return ""
    quantity = quantity_of(reading.name)
    if gauge is not None and gauge.chance is not None and quantity.unit == "%":
        return f"{kind.chance_word} {percent(gauge.chance)}"
    return f"{kind.chance_word} {quantity.number(reading.chance)}"


def tone_of(judgement: Judgement) -> str:
    """Return the style of a judgement: its word, and `good` for a bound that implies something."""
    return "good" if judgement.is_good else judgement.status.replace(" ", "-")


def _unit(judged: Sequence[Judgement]) -> str:
    """Return what the prices of a table are counted in; nothing if none is told."""
    losses = [one.worst.loss for one in judged if price_text(one) not in ("", NONE)]
    return "" if not losses else f"points of {utility_name(losses[0])}"


def attack_text(judgement: Judgement) -> str:
    """Return the name of the strongest attack; of several that are tried together, with how many they are."""
    worst = judgement.worst
    return f"{worst.attack} ({len(worst.alone)} together)" if worst.alone else worst.attack


def price_text(judgement: Judgement) -> str:
    """Return what a defence costs, in a few words; a dash where no price is told."""
    loss = judgement.worst.loss
    if is_undefended(judgement.defence) or loss is None or judgement.beside:
        return NONE
    return price_words(loss)
