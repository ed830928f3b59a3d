"""Samples: pictures that an attacker made up of a class that only others hold."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import ClassVar, Literal

from leaktight.core.display import percent, show_count
from leaktight.core.metric import Reading
from leaktight.core.record import Record
from leaktight.findings.column import Column, chance, result
from leaktight.findings.kind import LeakKind, Severity, excess, is_beyond
from leaktight.findings.rows import Row

RECOGNISED, ANY_CLASS = "recognised", "recognised_any"


class Samples(LeakKind):
    """Made-up samples of a class, by the share classified as it; another class of the attacked is a leak too."""

    kind: Literal["samples"] = "samples"
    rank: ClassVar[int] = 10
    heading: ClassVar[str] = "Made-up pictures"
    noun: ClassVar[str] = "a class"
    names: ClassVar[tuple[str, ...]] = (RECOGNISED, ANY_CLASS)
    galleries: ClassVar[tuple[str, ...]] = ("leaktight.report.generated:generated_section",)

    def reading(self, row: Row) -> Reading | None:
        """Return the share of samples that show the class asked for."""
        return row.reading(RECOGNISED)

    def severity(self, row: Row) -> Severity:
        """Rank by whichever is larger: samples of the class asked for, or of any class of the attacked."""
        return (
            (max((reading.value for reading in self._shares(row)), default=0.0),)
            if self.reading(row) is not None
            else ()
        )

    def is_read(self, row: Row, width: float = 1.0) -> bool:
        """Return whether samples show the class, or any class of the attacked, beyond chance."""
        return any(is_beyond(reading, width) for reading in (self.reading(row), any_class(row)) if reading is not None)

    def amount(self, row: Row) -> float:
        """Return what lies beyond chance of the class asked for, or of any class: whichever is more."""
        return max((excess(reading) for reading in self._shares(row)), default=0.0)

    def share_left(self, row: Row, base: Row) -> float:
        """Compare the class asked for, and any class: whichever is kept more."""
        pairs = ((self.reading(row), self.reading(base)), (any_class(row), any_class(base)))
        ratios = [
            excess(read) / excess(before)
            for read, before in pairs
            if read is not None and before is not None and read.beats_chance() and excess(before) > 0
        ]
        return max(ratios, default=0.0)

    def clause(self, row: Row) -> str:
        """Say how many samples show the class asked for, and any other of the attacked where that is the leak."""
        reading, other = self.reading(row), any_class(row)
        if reading is None:
            return "nothing was measured"
        said = f"{show_count(reading)} made-up pictures show {row.aim or 'the class asked for'}"
        said += "" if reading.chance is None else f", where {round(reading.chance * reading.n)} would by chance"
        if other is None or not other.beats_chance() or reading.beats_chance():
            return said
        return (
            f"{said}; but {percent(other.value)} show some class of the attacked, "
            f"where guessing gets {percent(other.chance or 0.0)}"
        )

    def short(self, row: Row) -> str:
        """Return the count."""
        reading = self.reading(row)
        return "nothing" if reading is None else show_count(reading)

    def measure(self, row: Row) -> str:
        """Say what is shown."""
        return f"made-up pictures that show {row.aim or 'the class asked for'}"

    def _shares(self, row: Row) -> list[Reading]:
        """Return the class asked for, and any class if more samples show one than guessing explains."""
        other = any_class(row)
        shown = self.reading(row), other if other is not None and other.beats_chance() else None
        return [reading for reading in shown if reading is not None]

    def beats_chance(self, row: Row) -> bool:
        """Return whether samples show the class, or any class of the attacked, beyond chance."""
        return any(reading.beats_chance() for reading in (self.reading(row), any_class(row)) if reading is not None)

    def columns(self) -> tuple[Column, ...]:
        """Return how many made-up pictures show the class asked for, and how many any class of the attacked."""
        return (
            Column("Pictures of the class (95 %)", lambda row: result(row, self.reading(row))),
            Column("Chance", lambda row: chance(self.reading(row))),
            Column("Of any class (95 %)", lambda row: result(row, any_class(row))),
            Column("Chance of any", lambda row: chance(any_class(row))),
        )

    def glossary(self, names: Collection[str], records: Sequence[Record]) -> dict[str, str]:
        """Explain how made-up pictures are scored."""
        if RECOGNISED not in names:
            return {}
        return {
            "Pictures of the class": "How many made-up pictures three classifiers, learned from public examples, take "
            "for the class on average. They may be fooled by a picture in which a person sees nothing: look at it.",
            "Any class": "How many they take for whichever class of the attacked. Nothing by itself: compare it with "
            "its chance, which is what they make of public examples, or of what the same attack draws with a random "
            "key, whichever is more.",
            "Rounds": "The share recognised in the median and in the best of the rounds whose pictures were kept; only "
            "who knows the truth can name the best.",
            "Nearness": "The distance to the nearest private example, as a share of that and the distance to the "
            "nearest public one: below 0.5 the pictures show these very examples, at 0.5 their class; also over all "
            "classes of the attacked.",
            "Mean picture": "The distance to the nearest private example, by that of the mean of public ones: above 1 "
            "the pictures are farther from everything private than that blur.",
            "Diversity": "0 if all made-up pictures are one picture, 1 if they differ as much as private examples do.",
        }

    def chart_reading(self, row: Row) -> Reading | None:
        """Return all that show a class of the attacked, asked for or not."""
        return any_class(row) or self.reading(row)

    def hover(self, row: Row) -> tuple[str, ...]:
        """Say no more than the chart does."""
        return ()


def any_class(row: Row) -> Reading | None:
    """Return how many made-up samples show whichever class of the attacked, over all training runs.

    A generator that makes one picture is recognised wholly or not at all, also with a random key, which is part of the
    chance level: one training run that was picked for its share would prove nothing.
    """
    return row.reading(ANY_CLASS)
