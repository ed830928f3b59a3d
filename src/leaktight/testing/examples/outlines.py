"""Outlines: shapes that come back from a message, although the picture does not."""

from __future__ import annotations

from typing import ClassVar, Literal

from leaktight.core.metric import Reading
from leaktight.findings.kind import LeakKind
from leaktight.findings.rows import Row

EDGES = "example_edge_error"


class Outlines(LeakKind):
    """Outlines of private images, by the error of their edges: an example of a leak kind."""

    kind: Literal["example_outlines"] = "example_outlines"
    rank: ClassVar[int] = 60
    heading: ClassVar[str] = "Outlines"
    noun: ClassVar[str] = "outlines"
    of_examples: ClassVar[bool] = True
    names: ClassVar[tuple[str, ...]] = (EDGES,)
    chart: ClassVar[str] = "edge error"

    def reading(self, row: Row) -> Reading | None:
        """Return what rows are judged by; a row without it is not about outlines."""
        return row.reading(EDGES, "raw")

    def clause(self, row: Row) -> str:
        """Say what an attack got, as the middle of a sentence."""
        return f"outlines come back with an edge error of {self.short(row)}"

    def short(self, row: Row) -> str:
        """Return the figure alone."""
        reading = self.reading(row)
        return "nothing" if reading is None else f"{reading.value:.2g}"

    def measure(self, row: Row) -> str:
        """Say what the figure counts."""
        return "edge error"
