"""The strongest attack: of several that are tried together, each can be run by itself."""

from __future__ import annotations

from collections.abc import Iterable

from leaktight.findings.kind import LeakKind
from leaktight.findings.rows import Row


def strongest(kind: LeakKind, rows: Iterable[Row]) -> Row | None:
    """Return the row that leaks most, or None of none."""
    return max(rows, key=kind.severity, default=None)


def strongest_part(kind: LeakKind, rows: Iterable[Row]) -> Row | None:
    """Return what reads most: a row, or one attack of several where it reads more than their answer; None of none."""
    rows = tuple(rows)
    victims = victims_of(kind, rows)
    return max(parts_of(kind, rows), key=lambda part: weight_of(kind, part, victims), default=None)


def parts_of(kind: LeakKind, rows: Iterable[Row]) -> list[Row]:
    """Return what an attacker can do: believe the answer of several attacks, or run any one of them."""
    return [part for row in rows for part in (row, *row.alone) if kind.unit(part) == kind.unit(row)]


def victims_of(kind: LeakKind, rows: Iterable[Row]) -> int:
    """Return how many victims there are."""
    return max((reading.n for row in rows if (reading := kind.reading(row)) is not None), default=0)


def share_of_victims(kind: LeakKind, row: Row, victims: int) -> float:
    """Return the share of the victims that an attack met: one of several may be tried only where others failed."""
    reading = kind.reading(row)
    return reading.n / victims if row.suite and reading is not None and victims else 1.0


def weight_of(kind: LeakKind, row: Row, victims: int) -> tuple[object, ...]:
    """Return what attacks are ranked by: what they read, if they met all victims.

    Of equals, the answer of several goes before any one of them.
    """
    severity = kind.severity(row)
    return share_of_victims(kind, row, victims), severity[:1], not row.suite, severity, row.informative, row.adaptive
