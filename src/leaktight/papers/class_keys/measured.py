"""What was measured: the records of a scope's audits, by part, framework and probe."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from leaktight.core.defence import Defence
from leaktight.core.record import Record
from leaktight.learning.federated import Federated
from leaktight.papers.class_keys.plans import folder
from leaktight.papers.paper import Records

BySeed = Mapping[int, float]
ACCURACY = "accuracy"


@dataclasses.dataclass(frozen=True)
class Measured:
    """The records of one data set's audits.

    Args:
        name: the data set.
        records: of all audits, by the name of the plan.
    """

    name: str
    records: Records

    def part(self, part: str, repeats: int | None = None) -> list[Record]:
        """Return the measurements of a part; of one that has a plan for each repeat, those of all."""
        names = [folder(self.name, part, repeat) for repeat in ([None] if repeats is None else range(repeats))]
        return [record for name in names for record in self.records.get(name, ()) if record.cell.purpose == "measure"]


def values(records: Sequence[Record], reading: str, defence: Defence, label: str, rounds: int | None = None) -> BySeed:
    """Return a reading for each seed that has it.

    Args:
        records: where to look.
        reading: its name.
        defence: under which defence.
        label: of which probe.
        rounds: after how long a training; None for any.
    """
    found = {}
    for record in records:
        cell = record.cell
        played = cell.scenario.rounds if isinstance(cell.scenario, Federated) else None
        if (cell.defence, cell.label) == (defence, label) and rounds in (None, played):
            value = record.reading(reading)
            if value is not None:
                found[cell.seed] = value.value
    return found


def chance(records: Sequence[Record], reading: str) -> float | None:
    """Return the mean chance level of a reading; None if there is none."""
    levels = [found.chance for record in records if (found := record.reading(reading)) and found.chance is not None]
    return sum(levels) / len(levels) if levels else None


def ratios(one: BySeed, other: BySeed) -> list[float]:
    """Return one over the other for each seed that has both.

    Example:
        >>> ratios({0: 0.5, 1: 0.9}, {0: 1.0, 2: 1.0})
        [0.5]
    """
    return [one[seed] / other[seed] for seed in one if other.get(seed)]
