"""Samples: pictures that an attacker made up of a class that only others hold."""

from __future__ import annotations

from leaktight.core.display import percent
from leaktight.core.metric import Reading
from leaktight.findings.kind import LeakKind, Severity, excess, is_beyond
from leaktight.findings.rows import RECOGNISED, Row


class Samples(LeakKind):
    """Made-up samples of a class, by the share that a classifier takes for it; another class of the attacked is a leak too."""

    name = "samples"
    heading = "Made-up pictures"
    noun = "a class"
    of_examples = False

    def reading(self, row: Row) -> Reading | None:
        """Return the share of samples that show the class asked for."""
        return row.reading(RECOGNISED)

    def severity(self, row: Row) -> Severity:
        """Rank by whichever is larger: samples of the class asked for, or of any class of the attacked."""
        return (max((reading.value for reading in self._shown(row)), default=0.0),) if self.reading(row) is not None else ()

    def is_read(self, row: Row, width: float = 1.0) -> bool:
        """Return whether samples show the class, or any class of the attacked, beyond chance."""
        return any(is_beyond(reading, width) for reading in (self.reading(row), row.any_class) if reading is not None)

    def amount(self, row: Row) -> float:
        """Return what lies beyond chance of the class asked for, or of any class: whichever is more."""
        return max((excess(reading) for reading in self._shown(row)), default=0.0)

    def kept(self, row: Row, base: Row) -> float:
        """Compare the class asked for, and any class: whichever is kept more."""
        pairs = ((self.reading(row), self.reading(base)), (row.any_class, base.any_class))
        told = [
            excess(read) / excess(before)
            for read, before in pairs
            if read is not None and before is not None and read.beats_chance() and excess(before) > 0
        ]
        return max(told, default=0.0)

    def found(self, row: Row) -> str:
        """Say how many samples show the class that was asked for, and any other of the attacked where that is the leak."""
        reading, other = self.reading(row), row.any_class
        if reading is None:
            return "nothing was measured"
        said = f"{percent(reading.value)} of the made-up pictures show the class asked for"
        said += "" if reading.chance is None else f", where guessing gets {percent(reading.chance)}"
        if other is None or not other.beats_chance() or reading.beats_chance():
            return said
        where = " in one of the training runs" if len(row.seeds) > 1 else ""
        return f"{said}; but {percent(other.value)} show some class of the attacked{where}, where guessing gets {percent(other.chance or 0.0)}"

    def short(self, row: Row) -> str:
        """Return the share."""
        reading = self.reading(row)
        return "nothing" if reading is None else percent(reading.value)

    def measure(self, row: Row) -> str:
        """Say what is shown."""
        return "of the made-up pictures show the class asked for"

    def _shown(self, row: Row) -> list[Reading]:
        """Return the class asked for, and any class if more samples show one than guessing explains."""
        any_class = row.any_class if row.any_class is not None and row.any_class.beats_chance() else None
        return [reading for reading in (self.reading(row), any_class) if reading is not None]
