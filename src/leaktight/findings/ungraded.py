"""Ungraded: captured messages behind which nobody knows the examples.

What the attacker itself can tell, and no more.
"""

from __future__ import annotations

import math
from typing import ClassVar, Literal

from leaktight.core.display import count
from leaktight.core.metric import Reading
from leaktight.core.probe import DIVERGED, OBJECTIVE
from leaktight.findings.column import NOTHING, Column
from leaktight.findings.kind import LeakKind, Severity
from leaktight.findings.rows import Row

FITS, BETTER = 0.1, 0.5
"""The shares of what is left on noise of the same size below which a message is explained, and explained in part."""


class Ungraded(LeakKind):
    """Guesses that nobody could compare with the originals, by what was left of the attacker's objective."""

    kind: Literal["ungraded"] = "ungraded"
    rank: ClassVar[int] = 90
    heading: ClassVar[str] = "Not graded"
    noun: ClassVar[str] = "examples"
    of_examples: ClassVar[bool] = True
    names: ClassVar[tuple[str, ...]] = (OBJECTIVE,)
    chance_word: ClassVar[str] = "on noise"
    unjudged: ClassVar[str] = "Nobody compared the guesses with the originals: add the private batches with `--truth`."
    pictured: ClassVar[str] = OBJECTIVE
    galleries: ClassVar[tuple[str, ...]] = ("leaktight.report.pictures:pictures_section",)

    def reading(self, row: Row) -> Reading | None:
        """Return the objective."""
        return row.reading(OBJECTIVE)

    def clause(self, row: Row) -> str:
        """Say how many messages the attack explains, and what was left of its objective, beside that on noise."""
        reading = self.reading(row)
        if reading is None or reading.chance is None:
            return f"the attack {row.attack} was left with {self.short(row)} of its objective"
        many = _count_explained(reading)
        misfit = f"misfit {self.short(row)}; {reading.chance:.3g} on noise of the same size"
        if not many:
            how = "only in part" if reading.value < BETTER * reading.chance else "hardly better than noise"
            return f"the attack {row.attack} explains the messages {how} ({misfit})"
        which = "the messages" if many < 0 else f"{many} of {count(reading.n, 'message')}"
        return f"the attack {row.attack} found examples that explain {which} ({misfit})"

    def headline(self, row: Row) -> str:
        """Say what was found, and what to make of it."""
        reading = self.reading(row)
        if reading is None or not _count_explained(reading):
            return f"{self.clause(row)}. That shows neither a leak nor protection"
        return f"{self.clause(row)}. Nobody compared them with the originals; treat these messages as leaked"

    def severity(self, row: Row) -> Severity:
        """Let the attack speak first that was left with least of what it is left with on noise.

        Objectives of different attacks cannot be compared by themselves.
        """
        reading = self.reading(row)
        if reading is None:
            return ()
        return (-reading.value / reading.chance if reading.chance else -math.inf, -reading.value)

    def gauge(self, row: Row) -> None:
        """Return nothing: an objective is no share of anything."""

    def short(self, row: Row) -> str:
        """Return the number."""
        reading = self.reading(row)
        return "nothing" if reading is None else f"{reading.value:.3g}"

    def measure(self, row: Row) -> str:
        """Say what was left."""
        return "of the attacker's objective left"

    def columns(self) -> tuple[Column, ...]:
        """Return what the attacker itself knows of its success, where nobody knows the truth."""
        return (
            Column("Objective, not graded", lambda row: row.status if _divergence(row) is None else self.short(row)),
            Column("Messages", lambda row: NOTHING if (lost := _divergence(row)) is None else str(lost.n)),
            Column("Diverged", lambda row: NOTHING if (lost := _divergence(row)) is None else f"{lost.value:.0f}"),
        )


def _count_explained(reading: Reading) -> int:
    """Return how many messages are explained far better than noise; -1 for all, where single values were not kept."""
    if reading.chance is None:
        return 0
    if not reading.each:
        return -1 if reading.value < FITS * reading.chance else 0
    return sum(left < FITS * reading.chance for left in reading.each)


def _divergence(row: Row) -> Reading | None:
    """Return how many searches diverged, of a row that has an objective."""
    return None if row.reading(OBJECTIVE) is None else row.reading(DIVERGED)
