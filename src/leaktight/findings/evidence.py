"""Evidence: which attacks say something by failing, and what is missing where too few do."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from leaktight.audit.rows import Row
from leaktight.audit.words import counted, listed
from leaktight.core.attack import Principle
from leaktight.findings.kind import LeakKind

MOST_FAILED = 0.2
"""The largest share of an attack's searches that may have failed: of eight searches one. What the others did not find is evidence."""
PRINCIPLES: dict[Principle, str] = {
    "search": "search over candidates",
    "algebra": "exact algebra",
    "learned": "learned model",
    "statistic": "statistic over messages",
}
"""What attacks rest on, in words."""
PLURALS = {"does": "do", "was": "were", "searches": "search", "searches,": "search,"}


@dataclasses.dataclass(frozen=True)
class Tried:
    """One attack against a defence in one setting, and what its failure is worth.

    Args:
        kind: the kind of leak that it is after.
        row: what it reached.
        twin: what the same attack reached in the same setting without a defence; None if that was not measured.
        victims: how many victims there are; an attack of several that are tried together may have met some of them only.
    """

    kind: LeakKind
    row: Row
    twin: Row | None = None
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
        """Whether it reads its undefended twin."""
        return self.twin is not None and self.kind.is_read(self.twin)

    @property
    def search_failed(self) -> bool | None:
        """Whether too many of its searches failed, with or without the defence; None if it searches and nobody could tell."""
        own = self._failed(self.row)
        return True if self.twin is not None and self._failed(self.twin) else own

    def _failed(self, row: Row) -> bool | None:
        failed = self.kind.failed(row)
        if failed is None:
            return None if self.kind.principle(row) == "search" else False
        return failed.value > MOST_FAILED

    @property
    def met(self) -> int:
        """How many victims it met."""
        reading = self.kind.reading(self.row)
        return 0 if reading is None else reading.n

    @property
    def meets_most(self) -> bool:
        """Whether it met nearly all victims: those that it did not meet are as open as those whose search failed."""
        return self.met >= (1 - MOST_FAILED) * self.victims

    @property
    def counts(self) -> bool:
        """Whether that it found nothing says something about the defence."""
        works = self.reads_undefended and self.search_failed is False and self.meets_most
        return works and self.row.adaptive and not self.kind.is_read(self.row)

    @property
    def flaw(self) -> str:
        """Why its failure does not count, as what is said after its name; nothing if it counts, or if it did not fail."""
        if self.counts or self.kind.is_read(self.row):
            return ""
        if self.twin is None:
            return "was not tried without a defence"
        if not self.reads_undefended:
            return "failed even without a defence"
        if not self.meets_most:
            return f"met {self.met} of {self.victims} victims only"
        if (failed := self.kind.failed(self.row)) is not None and failed.value > MOST_FAILED:
            return f"failed in {counted(failed)} searches"
        if self.search_failed:
            return "searches in vain even without a defence"
        if not self.row.adaptive:
            return "does not model this defence"
        return "searches, and nobody could tell whether it failed"


def tried_in(kind: LeakKind, rows: Sequence[Row], open_rows: Sequence[Row]) -> tuple[Tried, ...]:
    """Return each attack behind some rows that speaks of this kind of leak, members of an ensemble by themselves.

    Args:
        kind: the kind of leak.
        rows: those of one defence.
        open_rows: those without a defence.
    """
    twins = {_identity(kind, part): part for row in open_rows for part in row.attacks}
    return tuple(
        Tried(kind, part, twins.get(_identity(kind, part)), reading.n)
        for row in rows
        if (reading := kind.reading(row)) is not None
        for part in row.attacks
        if kind.reading(part) is not None
    )


def _identity(kind: LeakKind, row: Row) -> tuple[object, ...]:
    return row.scenario, row.batch_size, row.stage, row.attack, kind.unit(row)


def is_enough(tried: Sequence[Tried]) -> bool:
    """Return whether attacks that rest on at least two principles count."""
    return len({one.principle for one in tried if one.counts}) > 1


def missing_in(tried: Sequence[Tried]) -> str:
    """Say what is missing for calling a defence not broken, in a sentence.

    Example:
        >>> missing_in(())
        'No attack was tried.'
    """
    if not tried:
        return "No attack was tried."
    if not any(one.reads_undefended for one in tried) and all(one.twin is not None for one in tried):
        verb = "The attack" if len({one.name for one in tried}) == 1 else "Every attack"
        return f"{verb} failed even without a defence, so this says nothing."
    counting = [one for one in tried if one.counts]
    flaws = _flaws(tried)
    if not counting and all(_all_failed(one) for one in tried if one.reads_undefended):
        return "Every search failed, so this says nothing about the defence; a better search may find more."
    if not counting:
        return f"No attack counts as evidence: {flaws}."
    names = listed(list(dict.fromkeys(one.name for one in counting)))
    only = f"Only one principle was tried: {counting[0].principle} ({names})."
    return f"{only} Of the others, {flaws}." if flaws else only


def _all_failed(tried: Tried) -> bool:
    failed = tried.kind.failed(tried.row)
    return failed is not None and round(failed.value * failed.n) == failed.n


def _flaws(tried: Sequence[Tried]) -> str:
    """Say of each attack that does not count why, those with the same flaw together."""
    names: dict[str, dict[str, None]] = {}
    for one in tried:
        if not one.counts:
            names.setdefault(one.flaw, {})[one.name] = None
    return "; ".join(f"{listed(list(who))} {_plural(flaw) if len(who) > 1 else flaw}" for flaw, who in names.items())


def _plural(flaw: str) -> str:
    """Return a flaw of several attacks.

    Example:
        >>> _plural("does not model this defence"), _plural("failed in all 8 searches")
        ('do not model this defence', 'failed in all 8 searches')
    """
    verb, _, rest = flaw.partition(" ")
    return f"{PLURALS.get(verb, verb)} {rest}"
