"""Ungraded: captured messages behind which nobody knows the examples. What the attacker itself can tell, and no more."""

from __future__ import annotations

from leaktight.core.metric import Reading
from leaktight.core.probe import OBJECTIVE
from leaktight.findings.kind import LeakKind, Severity
from leaktight.findings.rows import Row


class Ungraded(LeakKind):
    """Guesses that nobody could compare with the originals, by what was left of the attacker's objective."""

    name = "ungraded"
    heading = "Not graded"
    noun = "examples"

    def reading(self, row: Row) -> Reading | None:
        """Return the objective."""
        return row.reading(OBJECTIVE)

    def found(self, row: Row) -> str:
        """Say what was left."""
        return f"the attack {row.attack} was left with {self.short(row)} of its objective"

    def severity(self, row: Row) -> Severity:
        """Let the attack speak first that was left with least; objectives of different attacks can hardly be compared."""
        reading = self.reading(row)
        return () if reading is None else (-reading.value,)

    def short(self, row: Row) -> str:
        """Return the number."""
        reading = self.reading(row)
        return "nothing" if reading is None else f"{reading.value:.3g}"

    def measure(self, row: Row) -> str:
        """Say what was left."""
        return "of the attacker's objective left"
