"""Contests: attacks on the same messages, compared by what they reached."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

from leaktight.core.attack import Attack
from leaktight.core.metric import Reading
from leaktight.core.probe import Attempt, attack_of
from leaktight.core.record import Record
from leaktight.core.threat import Knows
from leaktight.findings.adaptation import member_of
from leaktight.findings.kind import first_kind
from leaktight.findings.rows import Row, rows_of
from leaktight.statistics.pooling import leaks_more

COSTS = {"algebra": 0, "statistic": 0, "learned": 1, "search": 2}
"""How dear attacks of each principle are: a formula, a model that is learned once, a search for every message."""

Place = tuple[int, str, int, str]
"""What attacks on the same messages share: scenario, defence, batch size and stage."""


@dataclasses.dataclass(frozen=True)
class Entry:
    """One attack that was tried: by itself, or as one of several that were tried together.

    Args:
        row: what it reached.
        attack: its settings.
        knows: what it was granted.
        suite: the attack that it was tried as a part of; empty for one by itself.
    """

    row: Row
    attack: Attack
    knows: frozenset[Knows]
    suite: str = ""

    @property
    def name(self) -> str:
        """How it is named to people."""
        return self.row.title

    @property
    def cost(self) -> int:
        """How dear it is, in classes: one that is simple costs nothing."""
        return 0 if self.attack.simple else COSTS[self.attack.principle]

    @property
    def adaptive(self) -> bool:
        """Whether it models the defence."""
        return self.row.adaptive

    def beats(self, other: Entry) -> bool:
        """Return whether it got more than another from the same messages.

        The dear attacks of a suite may be tried only where cheap ones failed: then the two speak of other messages, and
        neither wins.
        """
        first, second = common(self.row, other.row)
        same = not (self.suite or other.suite) or (first is not None and second is not None and first.n == second.n)
        return same and beats(self.row, other.row)


def entries_of(records: Sequence[Record]) -> dict[Place, list[Entry]]:
    """Return every attack that was tried, by the messages that it was tried on.

    Of attacks that were tried together each is an entry, and their joint answer is none: it is chosen by what an
    attacker can see.
    """
    probes = {record.cell.key: record.cell.probe for record in records}
    found: dict[Place, list[Entry]] = {}
    for row in rows_of(records):
        probe = probes[row.cells[0]]
        attack = attack_of(probe)
        if attack is None or not isinstance(probe, Attempt):
            continue
        place = (row.scenario, row.defence.key, row.batch_size, row.stage)
        found.setdefault(place, []).extend(_entries(row, attack, probe.threat.knows))
    return found


def _entries(row: Row, attack: Attack, knows: frozenset[Knows]) -> list[Entry]:
    if not row.alone:
        return [Entry(row, attack, knows)]
    known = ((one, member_of(attack, one.attack)) for one in row.alone)
    return [Entry(one, part, knows, suite=row.attack) for one, part in known if part is not None]


def main_reading(row: Row) -> Reading | None:
    """Return what an attack is compared by: that of the kind of leak that it is after first of all."""
    kind = first_kind(row)
    return None if kind is None else kind.contest_reading(row)


def common(one: Row, other: Row) -> tuple[Reading | None, Reading | None]:
    """Return what the first row is compared by, and the same of the other, which may be compared by something else."""
    first, second = main_reading(one), main_reading(other)
    if first is not None and (second is None or second.name != first.name):
        second = other.reading(first.name, first.against)
    return first, second


def beats(one: Row, other: Row) -> bool:
    """Return whether one row leaks more than the other; below chance there is no better and worse."""
    first, second = common(one, other)
    if first is None or second is None:
        return False
    return leaks_more(first, second) and (first.chance is None or first.beats_chance())


def cells_of(rows: Iterable[Row]) -> tuple[str, ...]:
    """Return the keys of the cells behind rows, each once."""
    return tuple(dict.fromkeys(key for row in rows for key in row.cells))
