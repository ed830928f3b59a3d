"""Verdict on captured messages behind which nobody knows the examples: what the attacker itself can tell, and no more."""

from __future__ import annotations

from collections.abc import Sequence

from leaktight.audit.rows import Row
from leaktight.core.probe import OBJECTIVE


def of_ungraded(rows: Sequence[Row]) -> tuple[str, ...]:
    """Say for each attack what was left of its objective; nothing where there was none.

    Example:
        >>> of_ungraded([])
        ()
    """
    found = [(row, reading) for row in rows if (reading := row.reading(OBJECTIVE)) is not None]
    if not found:
        return ()
    left = [f"{row.attack} was left with {reading.value:.3g} of its objective ({row.setting})" for row, reading in found]
    return (
        "Nothing is graded: without the private batches only the attacker's own objective is known, and that tells how well its examples "
        "explain the messages, not whether they are the private ones. Add the batches with `--truth`.",
        *(f"As captured: {sentence}." for sentence in left),
    )
