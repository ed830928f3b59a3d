"""Evidence: which attacks say something by failing, and what is missing where too few do."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from leaktight.core.attack import Principle
from leaktight.core.display import join_words, show_count
from leaktight.findings.kind import LeakKind
from leaktight.findings.rows import Row
from leaktight.findings.strongest import strongest_part

MOST_FAILED = 0.2
"""The largest share of an attack's searches that may have failed: of eight searches one.

What the others did not find is evidence.
"""
HALF = 0.5
"""How much of what is read without a defence counts as reading it.

An attack that reads less does not work. A defence under which an attack still reads that much leaks.
"""
PRINCIPLES: dict[Principle, str] = {
    "search": "search over candidates",
    "algebra": "exact algebra",
    "learned": "learned model",
    "statistic": "statistic over messages",
}
"""What attacks rest on, in words."""
FAILED_BARE = "failed even without a defence"
PLURALS = {"does": "do", "was": "were", "searches": "search", "searches,": "search,", "reads": "read"}


@dataclasses.dataclass(frozen=True)
class Tried:
    """One attack against a defence in one setting, and what its failure is worth.

    Args:
        kind: the kind of leak that it is after.
        row: what it reached.
        twin: what the same attack reached in the same setting without a defence; None if that was not measured.
        strongest: what the strongest attack reached in that setting without a defence; None if nothing was measured.
        victims: how many victims there are; an attack of several that are tried together may have met some of them
            only.
    """

    kind: LeakKind
    row: Row
    twin: Row | None = None
    strongest: Row | None = None
    victims: int = 0

    @property
    def name(self) -> str:
        """How the report names it."""
        return self.row.attack

    @property
    def principle(self) -> str:
        """What it rests on, in words."""
        principle = self.kind.principle(self.row)
        return PRINCIPLES[principle] if principle else "measurement"

    @property
    def reads_undefended(self) -> bool:
        """Whether it reads its undefended twin, and at least half of what the strongest attack reads there.

        The strongest attack is that on undefended messages. An attack that is lucky once in eight images loses that one
        by luck too: that it then reads nothing says nothing of a defence.
        """
        if self.twin is None or not self.kind.is_read(self.twin):
            return False
        most = 0.0 if self.strongest is None else self.kind.amount(self.strongest)
        return self.kind.amount(self.twin) >= HALF * most

    @property
    def search_failed(self) -> bool | None:
        """Whether too many of its searches failed, with or without the defence.

        None if it searches and nobody could tell.
        """
        own = self._share_failed(self.row)
        return True if self.twin is not None and self._share_failed(self.twin) else own

    def _share_failed(self, row: Row) -> bool | None:
        failed = self.kind.failures(row)
        if failed is None:
            return None if self.kind.principle(row) == "search" else False
        return failed.value > MOST_FAILED

    @property
    def victims_met(self) -> int:
        """How many victims it met."""
        reading = self.kind.reading(self.row)
        return 0 if reading is None else reading.n

    @property
    def meets_most(self) -> bool:
        """Whether it met nearly all victims: those that it did not meet are as open as those whose search failed."""
        return self.victims_met >= (1 - MOST_FAILED) * self.victims

    @property
    def counts(self) -> bool:
        """Whether that it found nothing says something about the defence."""
        works = self.reads_undefended and self.search_failed is False and self.meets_most
        return works and self.row.adaptive and not self.kind.is_read(self.row)

    @property
    def flaw(self) -> str:
        """Why its failure does not count, in words that follow its name; empty if it counts or there was none."""
        if self.counts or self.kind.is_read(self.row):
            return ""
        if self.twin is None:
            return "was not tried without a defence"
        if not self.reads_undefended:
            return (
                FAILED_BARE
                if not self.kind.is_read(self.twin)
                else "reads less than half of what others read without a defence"
            )
        if not self.meets_most:
            return f"met {self.victims_met} of {self.victims} victims only"
        if (failed := self.kind.failures(self.row)) is not None and failed.value > MOST_FAILED:
            return f"failed in {show_count(failed)} searches"
        if self.search_failed:
            return "searches in vain even without a defence"
        if not self.row.adaptive:
            return "does not model this defence"
        return "searches, and nobody could tell whether it failed"


def attacks_behind(kind: LeakKind, rows: Sequence[Row], open_rows: Sequence[Row]) -> tuple[Tried, ...]:
    """Return each attack behind some rows that speaks of this kind of leak, members of an ensemble by themselves.

    Args:
        kind: the kind of leak.
        rows: those of one defence.
        open_rows: those without a defence.
    """
    twins = {_identity(kind, part): part for row in open_rows for part in row.attacks}
    strongest = strongest_part(kind, open_rows)
    return tuple(
        Tried(kind, part, twins.get(_identity(kind, part)), strongest, reading.n)
        for row in rows
        if (reading := kind.reading(row)) is not None
        for part in row.attacks
        if kind.reading(part) is not None
    )


def _identity(kind: LeakKind, row: Row) -> tuple[object, ...]:
    # Two suites may try attacks of one name, for longer or knowing more.
    return row.scenario, row.batch_size, row.stage, row.suite, row.attack, kind.unit(row)


def is_enough(tried: Sequence[Tried]) -> bool:
    """Return whether attacks that rest on at least two principles count."""
    return len({one.principle for one in tried if one.counts}) > 1


def say_missing(tried: Sequence[Tried]) -> str:
    """Say what is missing for calling a defence not broken, in a sentence.

    Example:
        >>> say_missing(())
        'No attack was tried.'
    """
    if not tried:
        return "No attack was tried."
    if all(one.twin is not None and not one.kind.is_read(one.twin) for one in tried):
        verb = "The attack" if len({one.name for one in tried}) == 1 else "Every attack"
        return f"{verb} {FAILED_BARE}, so this says nothing."
    counting = [one for one in tried if one.counts]
    flaws = _flaws(tried)
    working = [one for one in tried if one.reads_undefended]
    if not counting and working and all(map(_all_failed, working)):
        return "Every search failed, so this says nothing about the defence; a better search may find more."
    if not counting:
        return f"No attack counts as evidence: {flaws}."
    names = join_words(list(dict.fromkeys(one.name for one in counting)))
    only = f"Only one principle was tried: {counting[0].principle} ({names})."
    return f"{only} Of the others, {flaws}." if flaws else only


def _all_failed(tried: Tried) -> bool:
    failed = tried.kind.failures(tried.row)
    return failed is not None and round(failed.value * failed.n) == failed.n


def _flaws(tried: Sequence[Tried]) -> str:
    """Say of each attack that does not count why, those with the same flaw together."""
    names: dict[str, dict[str, None]] = {}
    for one in tried:
        if not one.counts:
            names.setdefault(one.flaw, {})[one.name] = None
    return "; ".join(
        f"{join_words(list(who))} {_plural(flaw) if len(who) > 1 else flaw}" for flaw, who in names.items()
    )


def _plural(flaw: str) -> str:
    """Return a flaw of several attacks.

    Example:
        >>> _plural("does not model this defence"), _plural("failed in all 8 searches")
        ('do not model this defence', 'failed in all 8 searches')
    """
    verb, _, rest = flaw.partition(" ")
    return f"{PLURALS.get(verb, verb)} {rest}"
