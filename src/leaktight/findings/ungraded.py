"""Ungraded: captured messages behind which nobody knows the examples.

What the attacker itself can tell, and no more.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from leaktight.core.metric import Reading
from leaktight.core.probe import DIVERGED, OBJECTIVE
from leaktight.findings.column import NOTHING, Column
from leaktight.findings.kind import LeakKind, Severity
from leaktight.findings.rows import Row


class Ungraded(LeakKind):
    """Guesses that nobody could compare with the originals, by what was left of the attacker's objective."""

    kind: Literal["ungraded"] = "ungraded"
    rank: ClassVar[int] = 90
    heading: ClassVar[str] = "Not graded"
    noun: ClassVar[str] = "examples"
    of_examples: ClassVar[bool] = True
    names: ClassVar[tuple[str, ...]] = (OBJECTIVE,)
    unjudged: ClassVar[str] = "Nobody compared the guesses with the originals: add the private batches with `--truth`."
    pictured: ClassVar[str] = OBJECTIVE
    galleries: ClassVar[tuple[str, ...]] = ("leaktight.report.pictures:pictures_section",)

    def reading(self, row: Row) -> Reading | None:
        """Return the objective."""
        return row.reading(OBJECTIVE)

    def clause(self, row: Row) -> str:
        """Say what was left."""
        return f"the attack {row.attack} was left with {self.short(row)} of its objective"

    def severity(self, row: Row) -> Severity:
        """Let the attack that was left with least speak first.

        Objectives of different attacks can hardly be compared.
        """
        reading = self.reading(row)
        return () if reading is None else (-reading.value,)

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


def _divergence(row: Row) -> Reading | None:
    """Return how many searches diverged, of a row that has an objective."""
    return None if row.reading(OBJECTIVE) is None else row.reading(DIVERGED)
