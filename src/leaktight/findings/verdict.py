"""Verdict: one word for what an audit shows about each defence and kind of leak, and the sentence that goes with it.

The words are never stronger than the evidence: a search that failed, or an attack that does not work undefended, says
nothing about a defence. The decision is taken here and nowhere else; terminal, report, export and files tell it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Literal, get_args

from leaktight.core.defence import Defence, is_undefended
from leaktight.core.metric import Reading
from leaktight.findings.bound import Bound, bound_of
from leaktight.findings.evidence import HALF, Tried, attacks_behind, is_enough, say_missing
from leaktight.findings.kind import LUCK, LeakKind, first_kind, leak_kinds
from leaktight.findings.rows import Row
from leaktight.findings.strongest import parts_of, share_of_victims, strongest_part, victims_of, weight_of

Verdict = Literal["refuted", "leaks", "reduced", "bounded", "not broken", "unknown"]
"""What an audit shows about a defence, in order of precedence.

- `refuted`: a claimed epsilon lies below its measured lower bound.
- `leaks`: at least half of what is read without the defence is read with it; without any defence, anything beyond
  chance.
- `reduced`: less, but more than blind guessing explains.
- `bounded`: an accounted epsilon with its delta; what it implies is said.
- `not broken`: at least two attacks found nothing that rest on different principles, model the defence, work without
  it, and did not fail.
- `unknown`: anything else; what is missing is said.
"""
PRECEDENCE: tuple[Verdict, ...] = get_args(Verdict)
Word = Literal[Verdict, "useless"]
"""What people are shown: the verdict, or `useless` where less leaks and the model learned nothing."""
NO_TWIN = "Nothing was measured without a defence here, so there is nothing to compare with."
OPEN = "No attack tried read more than guessing explains. That does not show that none can."


@dataclasses.dataclass(frozen=True)
class Judgement:
    """What was found about one defence and one kind of leak.

    Args:
        scenario: number of the scenario, from 1.
        defence: the defence at its strength.
        kind: the kind of leak.
        verdict: the word.
        worst: the row that decides: that of the strongest attack, in the setting where most leaks; an attack of several
            that are tried together counts by itself where it reads more than their answer.
        base: the strongest attack without defence in that setting; None if there is none.
        tried: the attacks that were tried in that setting.
        signs: which other readings of those attacks lie beyond their chance level, in words.
        missing: what is missing for a stronger word; empty unless `unknown`.
        bound: what an accounted epsilon implies; None if none bounds this kind of leak.
        luckiest: what an attacker would reach who knew which attack to believe; None unless that is more.
        suite: the row of the attacks that `worst` is one of; None if it stands by itself.
        beside: whether it is about what comes with an update beside its examples, as their labels do: the price and the
            charts are theirs.
    """

    scenario: int
    defence: Defence
    kind: LeakKind
    verdict: Verdict
    worst: Row
    base: Row | None = None
    tried: tuple[Tried, ...] = ()
    signs: tuple[str, ...] = ()
    missing: str = ""
    bound: Bound | None = None
    luckiest: Reading | None = None
    suite: Row | None = None
    beside: bool = False

    @property
    def reading(self) -> Reading | None:
        """What decides."""
        return self.kind.reading(self.worst)

    @property
    def attacks(self) -> tuple[str, ...]:
        """The names of the attacks that were tried, each once."""
        return tuple(dict.fromkeys(one.name for one in self.tried))

    @property
    def is_good(self) -> bool:
        """Whether it may be shown as good: an epsilon that implies something. Attacks alone never show that."""
        return self.status == "bounded" and self.bound is not None and self.bound.is_telling

    @property
    def status(self) -> Word:
        """The word that people are shown: whatever a defence keeps safe, a model that learned nothing is no use."""
        weighed = not is_undefended(self.defence) and self.verdict not in ("refuted", "leaks")
        return "useless" if weighed and self.worst.useless else self.verdict

    @property
    def withstood(self) -> bool:
        """Whether it has what `not broken` rests on: an epsilon that promises little does not make that less."""
        return self.status == "not broken" or (
            self.status == "bounded" and self.base is not None and is_enough(self.tried)
        )

    @property
    def may_be_advised(self) -> bool:
        """Whether the defence was shown to help, and left a model that learned something."""
        return self.is_good or self.withstood or self.status == "reduced"

    @property
    def charted(self) -> bool:
        """Whether charts show the reading that decides."""
        return not self.beside and first_kind(self.worst) == self.kind


def judge(rows: Sequence[Row], whole: Sequence[Row] | None = None) -> tuple[Judgement, ...]:
    """Return one judgement for each scenario, kind of leak and defence, in the order of the rows.

    Args:
        rows: what was measured.
        whole: the same rows with the values of single victims, where `rows` are to be passed on and have none: what
            decides is the same.
    """
    complete = {_name(part): part for row in (rows if whole is None else whole) for part in (row, *row.alone)}
    groups: dict[tuple[int, int, str], list[Row]] = {}
    kinds = leak_kinds()
    for place, kind in enumerate(kinds):
        for row in rows:
            if kind.reading(row) is not None:
                groups.setdefault((row.scenario, place, row.defence.key), []).append(row)
    found = [_judgement(kinds[key[1]], groups[key], rows, complete) for key in sorted(groups, key=lambda key: key[:2])]
    rebuilt = {judgement.scenario for judgement in found if judgement.kind.rebuilds}
    return tuple(
        dataclasses.replace(one, beside=one.scenario in rebuilt and one.kind.comes_beside(one.worst)) for one in found
    )


def _judgement(kind: LeakKind, group: Sequence[Row], rows: Sequence[Row], complete: Mapping[object, Row]) -> Judgement:
    group = _alike(kind, group)
    places: dict[object, list[Row]] = {}
    for row in group:
        places.setdefault(_place(kind, row), []).append(row)
    open_rows = [row for row in rows if is_undefended(row.defence) and kind.reading(row) is not None]
    judged = [
        _in_setting(kind, here, [row for row in open_rows if _place(kind, row) == place], complete)
        for place, here in places.items()
    ]
    return min(judged, key=_order)


def _in_setting(kind: LeakKind, rows: Sequence[Row], twins: Sequence[Row], complete: Mapping[object, Row]) -> Judgement:
    """Judge a defence, or none, in one setting.

    Args:
        kind: the kind of leak.
        rows: those of the defence in this setting, at least one.
        twins: those without a defence in the same setting.
        complete: rows by name, with the values of single victims.
    """
    base = None if is_undefended(rows[0].defence) else strongest_part(kind, twins)
    bound = (
        None if is_undefended(rows[0].defence) else _loosest([bound_of(row.budgets, kind.of_examples) for row in rows])
    )
    width = 1.0 if bound is None else LUCK
    parts = parts_of(kind, rows)
    beyond = [part for part in parts if kind.is_read(part, width) or signs_of(kind, part, width)]
    victims = victims_of(kind, rows)

    def share_left(row: Row) -> float:
        return _share_left(kind, row, base, complete) * share_of_victims(kind, row, victims)

    worst = max(beyond or rows, key=lambda row: (share_left(row), *weight_of(kind, row, victims)))
    found = Judgement(
        worst.scenario,
        worst.defence,
        kind,
        "unknown",
        worst,
        base,
        attacks_behind(kind, rows, twins),
        signs_of(kind, worst, width),
        bound=bound,
        luckiest=_luckier(kind, [complete.get(_name(row), row) for row in rows], worst),
        suite=next((row for row in rows if any(part is worst for part in row.alone)), None),
    )
    if beyond:
        return dataclasses.replace(found, verdict=_amount(kind, worst, base, share_left(worst)))
    if bound is not None:
        return dataclasses.replace(found, verdict="bounded")
    if base is not None and is_enough(found.tried):
        return dataclasses.replace(found, verdict="not broken")
    return dataclasses.replace(found, missing=_say_missing(found))


def _loosest(bounds: Sequence[Bound | None]) -> Bound | None:
    """Return the bound that holds for all rows; None if a row has none.

    A training run has none if the attacker sat in it, for example.
    """
    known = [bound for bound in bounds if bound is not None]
    return max(known, key=lambda bound: bound.rate) if len(known) == len(bounds) else None


def signs_of(kind: LeakKind, row: Row, width: float = 1.0) -> tuple[str, ...]:
    """Return which other readings lie beyond chance, in words: those of an attack, and of several together each one's.

    Of searches that all failed, no such reading decides anything.
    """
    own = _contradictions(kind, row, width)
    if own or kind.is_read(row, width):
        return own
    return tuple(f"by {part.attack} alone, {said}" for part in row.alone for said in _contradictions(kind, part, width))


def _contradictions(kind: LeakKind, row: Row, width: float) -> tuple[str, ...]:
    return kind.contradictions(row, width) if kind.failures(row) is None or row.informative else ()


def _amount(kind: LeakKind, worst: Row, base: Row | None, kept: float) -> Verdict:
    """Return how much is read, where anything is: without a twin that is read, nobody can say that it is less."""
    if base is None or not kind.is_read(base):
        return "leaks"
    return "leaks" if kind.is_read(worst) and kept >= HALF else "reduced"


def _share_left(kind: LeakKind, row: Row, base: Row | None, complete: Mapping[object, Row]) -> float:
    if base is None or not kind.is_read(base):
        return 0.0
    return kind.share_left(complete.get(_name(row), row), complete.get(_name(base), base)) if kind.is_read(row) else 0.0


def _say_missing(judgement: Judgement) -> str:
    if judgement.kind.unjudged:
        return judgement.kind.unjudged
    if is_undefended(judgement.defence):
        return OPEN
    return NO_TWIN if judgement.base is None else say_missing(judgement.tried)


def _luckier(kind: LeakKind, rows: Sequence[Row], worst: Row) -> Reading | None:
    best, judged = kind.luckiest(rows), kind.reading(worst)
    more = best is not None and judged is not None and best.value * best.n > judged.value * judged.n
    return best if more else None


def _order(judgement: Judgement) -> tuple[object, ...]:
    """Return what settings are ranked by: the worst word first.

    A setting that is not read without a defence speaks last.

    An epsilon that implies something in one setting says nothing of a setting that has none, or a larger one: of
    several, the largest is told. Of other settings in which nothing got through, the one that leaks most without a
    defence says most.
    """
    kind, base = judgement.kind, judgement.base
    compared = base is not None and kind.is_read(base)
    # Where some setting lacks evidence, another does not make up for it.
    telling = judgement.bound is not None and judgement.bound.is_telling
    ranks = {"unknown": 0 if compared else 4, "bounded": 3 if telling else 1, "not broken": 2}
    rank = ranks.get(judgement.verdict, PRECEDENCE.index(judgement.verdict) - len(PRECEDENCE))
    rate = judgement.bound.rate if judgement.verdict == "bounded" and judgement.bound is not None else 0.0
    before = kind.severity(base) if base is not None else ()
    own = kind.severity(judgement.worst)
    severities = (own, before) if rank < 0 else (before, own)
    return rank, -rate, *(tuple(-value for value in severity) for severity in severities)


def _alike(kind: LeakKind, group: Sequence[Row]) -> list[Row]:
    """Return the rows that can be ranked against each other.

    They have the unit that decides if any row has it, else the unit of the first row.
    """
    units = [kind.unit(row) for row in group]
    chosen = next((unit for unit in kind.units() if unit in units), units[0])
    return [row for row in group if kind.unit(row) == chosen]


def _place(kind: LeakKind, row: Row) -> tuple[object, ...]:
    """Return what two rows must share to be compared: scenario, setting, and what they are judged by."""
    return row.scenario, row.batch_size, row.stage, kind.unit(row)


def _name(row: Row) -> object:
    return row.scenario, row.defence.key, row.suite, row.attack, row.batch_size, row.stage
