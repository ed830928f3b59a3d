"""Leak kinds: what can leak, by which reading it is judged, and how it is said."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import ClassVar

from leaktight.core.attack import Principle
from leaktight.core.metric import Reading
from leaktight.findings.rows import Row
from leaktight.statistics.pooling import leakage

Severity = tuple[float, ...]
LUCK = 1.5
"""How much wider than a 95 % interval a reading's must be where luck must not decide: about three standard errors.

An audit looks at many readings of every defence, and one in forty lies beyond its 95 % interval by luck alone. That must not overrule an
epsilon, nor may it make a leak of a few images that happen to lie nearest to their owner's.
"""


class LeakKind(abc.ABC):
    """One kind of leak. `name` is its name in files, `heading` stands above what is found of it, `noun` in sentences.

    `of_examples` says whether it is about single examples, so that an epsilon for single examples bounds it.
    """

    name: ClassVar[str]
    heading: ClassVar[str]
    noun: ClassVar[str]
    of_examples: ClassVar[bool] = True

    @abc.abstractmethod
    def reading(self, row: Row) -> Reading | None:
        """Return what a row is judged by; None if it is not about this kind."""

    @abc.abstractmethod
    def found(self, row: Row) -> str:
        """Say what the attack of a row got, as a clause."""

    @abc.abstractmethod
    def short(self, row: Row) -> str:
        """Say the same as a figure alone."""

    @abc.abstractmethod
    def measure(self, row: Row) -> str:
        """Say what that figure counts."""

    def unit(self, row: Row) -> str:
        """Return what two rows must share to be compared: the name of what they are judged by."""
        reading = self.reading(row)
        return "" if reading is None else reading.name

    def units(self) -> Sequence[str]:
        """Return the units that decide before any other, if rows have several."""
        return ()

    def severity(self, row: Row) -> Severity:
        """Return what rows of one unit are ranked by: the larger, the more leaks."""
        reading = self.reading(row)
        return () if reading is None else (leakage(reading),)

    def is_read(self, row: Row, width: float = 1.0) -> bool:
        """Return whether more was read than blind guessing explains, by what the row is judged by.

        Args:
            row: what was measured.
            width: how wide intervals must be, as a multiple of those of 95 %.
        """
        reading = self.reading(row)
        return reading is not None and is_beyond(reading, width)

    def contradictions(self, row: Row, width: float = 1.0) -> tuple[str, ...]:
        """Say which other readings lie beyond their chance level: where there is one, nothing can be called protected."""
        return ()

    def amount(self, row: Row) -> float:
        """Return how much is read beyond chance, in the unit of what the row is judged by."""
        reading = self.reading(row)
        return 0.0 if reading is None else excess(reading)

    def kept(self, row: Row, base: Row) -> float:
        """Return how much of what is read without a defence is still read with it: 1 for all of it.

        By default the ratio of what both read beyond chance.
        """
        whole = self.amount(base)
        return self.amount(row) / whole if whole > 0 else 0.0

    def principle(self, row: Row) -> Principle | None:
        """Return what an attack rests on as far as this kind of leak goes."""
        return row.principle

    def failed(self, row: Row) -> Reading | None:
        """Return the share of failed searches, where this kind of leak is searched for."""
        return row.failed

    def luckiest(self, rows: Sequence[Row]) -> Reading | None:
        """Return what an attacker would reach who knew for each victim which of several attacks to believe; None if nobody can tell.

        Only the truth tells that, so that it judges nobody: it is the end that a luckier attacker might reach.
        """
        return None

    def detail(self, row: Row) -> str:
        """Name the attack and the setting."""
        return f"{row.attack}; {row.moment}"


def is_beyond(reading: Reading, width: float = 1.0) -> bool:
    """Return whether a reading lies beyond chance by an interval that is wider than that of 95 %.

    Example:
        >>> traced = Reading(name="tracing_distance", value=0.25, low=0.05, high=0.7, chance=0.75, leaks="low", n=4)
        >>> is_beyond(traced), is_beyond(traced, LUCK)
        (True, False)
    """
    if reading.low is None or reading.high is None:
        return False
    low, high = (reading.value + width * (end - reading.value) for end in (reading.low, reading.high))
    return reading.model_copy(update={"low": low, "high": high}).beats_chance()


def excess(reading: Reading) -> float:
    """Return how far a reading lies beyond chance, in its own unit; below 0 on the other side.

    Example:
        >>> excess(Reading(name="mse", value=0.25, chance=1.0, leaks="low")), excess(Reading(name="psnr", value=20, chance=11, leaks="high"))
        (0.75, 9.0)
    """
    return leakage(reading) - leakage(reading.model_copy(update={"value": reading.chance or 0.0}))
