"""Leak kinds: what can leak, by which reading it is judged, and how it is said and shown.

Verdicts, flags, terminal, report and exports ask the kinds, and know none of them by name. A new kind is one class; a
package of its own brings it in by an entry point.
"""

from __future__ import annotations

import abc
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from leaktight.core import registry
from leaktight.core.display import show_count
from leaktight.core.metric import Reading, quantity_of
from leaktight.core.value import Registered
from leaktight.findings.column import NOTHING, Column, chance, format_reading, result
from leaktight.findings.display import title_of
from leaktight.findings.layer_measure import LayerMeasure
from leaktight.statistics.pooling import leakage, leaks_more

if TYPE_CHECKING:
    from leaktight.core.attack import Principle
    from leaktight.core.record import Record
    from leaktight.findings.rows import Row
    from leaktight.findings.verdict import Judgement

Severity = tuple[float, ...]
LUCK = 1.5
"""How much wider than a 95 % interval a reading's must be where luck must not decide: about three standard errors.

An audit looks at many readings of every defence, and one in forty lies beyond its 95 % interval by luck alone. That
must not overrule an epsilon, nor may it make a leak of a few images that happen to lie nearest to their owner's.
"""

SHARE_ENDS = (-4, 104)
"""Between what a share in percent is drawn, so that points at 0 and at 100 are whole."""


class Axis(NamedTuple):
    """How readings are drawn.

    Args:
        title: what stands beside the axis.
        scale: what values are multiplied by.
        suffix: what follows each number of the axis.
        ends: where the axis begins and ends; None leaves that to the numbers.
    """

    title: str
    scale: float = 1
    suffix: str = ""
    ends: tuple[float, float] | None = None


class Gauge(NamedTuple):
    """A reading as a bar from 0, nothing, to 1, everything.

    Args:
        value: how long the bar is.
        low: the lower end of its interval; None if it has none.
        high: the upper end.
        chance: what someone who saw nothing would get; None if that is not known.
    """

    value: float
    low: float | None = None
    high: float | None = None
    chance: float | None = None


class Distance(NamedTuple):
    """A reading that says how far from what it is after an attack ends.

    Args:
        aim: what the attack is after.
        reading: the name of the reading.
        order: where it stands among other distances.
    """

    aim: str
    reading: str
    order: int = 50


class LeakKind(Registered):
    """One kind of leak: what may be read from messages.

    Only `reading`, `clause`, `short` and `measure` must be written. What is stated of a kind, as class attributes:

    - `rank`: the order in which kinds are told; of a row that several kinds read, the first is what the row is about.
    - `heading` stands above what is found of it, `noun` in sentences.
    - `names`: the readings that belong to it, so that no other kind takes them for its own.
    - `of_examples`: whether it is about single examples, so that an epsilon for single examples bounds it.
    - `rebuilds`: whether it is about examples as a whole, so that what comes with them, as labels do, stands beside it.
    - `unjudged`: why nobody can judge it; empty where attacks and the truth can.
    - `by_example`: those of its readings that have one value for each example.
    - `joined`: its reading of several messages about the same examples taken together; empty if there is none.
    - `pictured`: the reading beside which private pictures are kept; empty if there are none.
    - `control`: what a control cell must find, as the end of a sentence that begins with `A control`.
    - `distances`: how far from what they are after attacks end, for curves over strengths.
    - `chart`: what charts call it; `chance_word`: what stands before its chance level.
    - `layer`: how much of it a single layer gives away, if that can be measured.
    - `galleries` and `sections`: its own sections of the report, before and after the charts: functions from a page to
      a section, each as `package.module:function`.
    """

    family: ClassVar[str] = "leak"
    rank: ClassVar[int] = 50
    heading: ClassVar[str] = ""
    noun: ClassVar[str] = ""
    names: ClassVar[tuple[str, ...]] = ()
    of_examples: ClassVar[bool] = False
    rebuilds: ClassVar[bool] = False
    unjudged: ClassVar[str] = ""
    by_example: ClassVar[tuple[str, ...]] = ()
    joined: ClassVar[str] = ""
    pictured: ClassVar[str] = ""
    control: ClassVar[str] = ""
    chart: ClassVar[str] = "leakage"
    distances: ClassVar[tuple[Distance, ...]] = ()
    chance_word: ClassVar[str] = "guessing"
    layer: ClassVar[LayerMeasure | None] = None
    galleries: ClassVar[tuple[str, ...]] = ()
    sections: ClassVar[tuple[str, ...]] = ()

    @abc.abstractmethod
    def reading(self, row: Row) -> Reading | None:
        """Return what a row is judged by; None if it is not about this kind."""

    def leading_reading(self, row: Row) -> Reading | None:
        """Return what a row is judged by, if it is about this kind first of all."""
        return self.reading(row) if first_kind(row) == self else None

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
        """Say which other readings lie beyond chance: where there is one, nothing can be called protected."""
        return ()

    def amount(self, row: Row) -> float:
        """Return how much is read beyond chance, in the unit of what the row is judged by."""
        reading = self.reading(row)
        return 0.0 if reading is None else excess(reading)

    def share_left(self, row: Row, base: Row) -> float:
        """Return how much of what is read without a defence is still read with it: 1 for all of it.

        By default the ratio of what both read beyond chance.
        """
        whole = self.amount(base)
        return self.amount(row) / whole if whole > 0 else 0.0

    def comes_beside(self, row: Row) -> bool:
        """Return whether what is read comes with an update beside its examples, if these are judged too."""
        return False

    def principle(self, row: Row) -> Principle | None:
        """Return what an attack rests on as far as this kind of leak goes."""
        return row.principle

    def failures(self, row: Row) -> Reading | None:
        """Return the share of failed searches, where this kind of leak is searched for."""
        return row.failures

    def luckiest(self, rows: Sequence[Row]) -> Reading | None:
        """Return what an attacker would reach who knew for each victim which of several attacks to believe.

        None if nobody can tell. Only the truth tells that, so that it judges nobody: it is the end that a luckier
        attacker might reach.
        """
        return None

    def finer(self, row: Row) -> Reading | None:
        """Return a reading that moves before the one that decides does; None if there is none."""
        return None

    def contest_reading(self, row: Row) -> Reading | None:
        """Return what attacks on the same messages are compared by."""
        return self.finer(row) or self.reading(row)

    def beats_chance(self, row: Row) -> bool:
        """Return whether an attack gets more than guessing does, by what attacks are compared by."""
        reading = self.contest_reading(row)
        return reading is not None and reading.beats_chance()

    def is_exact(self, record: Record) -> bool | None:
        """Return whether a control cell found the known answer for all examples; None if it is about another kind."""
        return None

    def succeeds(self, record: Record) -> bool:
        """Return whether an attack on captured messages got through."""
        return any(reading.beats_chance() for reading in record.readings if reading.name in self.names)

    @abc.abstractmethod
    def clause(self, row: Row) -> str:
        """Say what the attack of a row got, as a clause."""

    def headline(self, row: Row) -> str:
        """Say the same as a clause that leads a page: the shorter the better."""
        return self.clause(row)

    def remainder(self, row: Row) -> str:
        """Say the same of what is left under a defence, where the headline has said what it is about."""
        return self.headline(row)

    @abc.abstractmethod
    def short(self, row: Row) -> str:
        """Say the same as a figure alone."""

    @abc.abstractmethod
    def measure(self, row: Row) -> str:
        """Say what that figure counts."""

    def detail(self, row: Row) -> str:
        """Name the attack and the setting."""
        return f"{row.attack}; {row.moment}"

    def luck(self, best: Reading) -> str:
        """Say what the luckiest attacker would reach."""
        return f"A luckier attacker, who knew for each victim which attack to believe, would get {show_count(best)}."

    def reach(self, row: Row) -> str:
        """Say how much a stronger attack may get, by the interval; nothing where that says little."""
        return ""

    def gain(self, knowing: Row, ignoring: Row) -> tuple[str, str, bool] | None:
        """Return what an attack gets that knows the defence, what one gets that ignores it, and whether that is sure.

        None if it does not get more.
        """
        one, other = self.reading(knowing), self.reading(ignoring)
        if one is None or other is None or leakage(one) <= leakage(other):
            return None
        return self.short(knowing), self.short(ignoring), leaks_more(one, other)

    def is_tabled(self, row: Row) -> bool:
        """Return whether a row needs this kind's columns on the terminal."""
        first = first_kind(row)
        return first == self or (first is None and bool(self.unjudged) and self.reading(row) is not None)

    def columns(self) -> tuple[Column, ...]:
        """Return its columns on the terminal."""
        return (
            Column(f"{self.heading} (95 %)", lambda row: result(row, self.reading(row))),
            Column("Chance", lambda row: chance(self.reading(row))),
        )

    def beside(self) -> tuple[Column, ...]:
        """Return what stands on the terminal beside the columns of a kind that rebuilds examples."""
        return ()

    def remarks(self, judgements: Sequence[Judgement]) -> Mapping[str, Sequence[str]]:
        """Return what else the terminal says, line by line below a heading."""
        return {}

    def say_reading(self, row: Row) -> str:
        """Return what a row is judged by with its name, its interval, and its layer if it is that of one."""
        reading = self.reading(row)
        if reading is None:
            return NOTHING
        quantity = quantity_of(reading.name)
        where = f", {reading.layer}" if reading.layer else ""
        unit = f" {quantity.unit}" if quantity.unit not in ("", "%") else ""
        return f"{quantity.title} {format_reading(reading, quantity.number)}{unit}{where}"

    def numbers(self, rows: Sequence[Row]) -> tuple[Column, ...]:
        """Return its columns in the report; readings that no column shows have one of their own anyway."""
        return ()

    def numbers_note(self, rows: Sequence[Row]) -> str:
        """Say what the numbers of the report are, where that is not obvious."""
        return ""

    def gauge(self, row: Row) -> Gauge | None:
        """Return the bar of a verdict: what was read as a share of all there is; None if it is no such share."""
        reading = self.reading(row)
        return None if reading is None else gauge_of(reading)

    def verdict_note(self, rows: Sequence[Row], records: Sequence[Record]) -> str:
        """Say what a reader must know of what is counted."""
        return ""

    def glossary(self, names: Collection[str], records: Sequence[Record]) -> Mapping[str, str]:
        """Explain its words.

        Args:
            names: the readings that the page shows.
            records: what was measured.
        """
        return {}

    def chart_reading(self, row: Row) -> Reading | None:
        """Return what charts show of a row."""
        return self.reading(row)

    def tradeoff_axis(self, readings: Sequence[Reading]) -> Axis:
        """Return how readings are drawn against what a model is worth."""
        return axis_of(readings[0].name)

    def strength_axis(self, readings: Sequence[Reading]) -> Axis:
        """Return how readings, the finer ones if there are any, are drawn over the strength of a defence."""
        return axis_of(readings[0].name)

    def hover(self, row: Row) -> tuple[str, ...]:
        """Say beside a point of a chart what was read."""
        reading = self.reading(row)
        return () if reading is None else (f"{title_of(reading.name)}: {reading.value:.3g}",)


def axis_of(reading: str) -> Axis:
    """Return how readings of a name are drawn: a share in percent, anything else in its own unit.

    Example:
        >>> axis_of("reconstruction_statement").suffix, axis_of("psnr").title
        (' %', 'PSNR (dB)')
    """
    quantity = quantity_of(reading)
    if quantity.unit == "%":
        return Axis(quantity.heading, scale=100, suffix=" %", ends=SHARE_ENDS)
    return Axis(quantity.heading)


def gauge_of(reading: Reading) -> Gauge | None:
    """Return a share, or an AUC, as a bar that is the longer the more leaks; None for anything else.

    Example:
        >>> gauge_of(Reading(name="label_distance", value=0.25, chance=0.9, leaks="low"))
        Gauge(value=0.75, low=None, high=None, chance=0.1)
        >>> gauge_of(Reading(name="psnr", value=0.9, leaks="high")) is None
        True
    """
    ends = (reading.value, reading.low, reading.high, reading.chance)
    is_share = quantity_of(reading.name).unit in ("", "%") and all(end is None or 0 <= end <= 1 for end in ends)
    if not is_share or reading.leaks is None:
        return None
    if reading.leaks == "high":
        return Gauge(*ends)
    low, high, chance = (
        None if end is None else round(1 - end, 9) for end in (reading.high, reading.low, reading.chance)
    )
    return Gauge(1 - reading.value, low, high, chance)


def leak_kinds() -> tuple[LeakKind, ...]:
    """Return every kind of leak, ours and those of plugins, in the order in which they are told.

    Example:
        >>> [kind.heading for kind in leak_kinds()][:2]
        ['Images', 'Made-up pictures']
    """
    return _instances(tuple(registry.classes(LeakKind.family).values()))


@cache
def _instances(classes: tuple[type[LeakKind], ...]) -> tuple[LeakKind, ...]:
    # Every row asks for them, so that they are made once.
    return tuple(sorted((made() for made in classes), key=lambda kind: (kind.rank, kind.kind)))


def layer_measures() -> tuple[LayerMeasure, ...]:
    """Return how much single layers give away of each kind of leak of which that can be measured, in order."""
    measures = (kind.layer for kind in leak_kinds())
    return tuple(sorted((one for one in measures if one is not None), key=lambda measure: measure.order))


def distances() -> dict[str, str]:
    """Return what attacks are after, in order, and the reading that says how far from it they end."""
    stated = sorted((one for kind in leak_kinds() for one in kind.distances), key=lambda distance: distance.order)
    return {distance.aim: distance.reading for distance in stated}


def terminal_columns(kind: LeakKind) -> list[Column]:
    """Return the columns of a kind on the terminal; what comes with rebuilt examples, as labels do, stands last."""
    beside = [column for other in leak_kinds() for column in other.beside()] if kind.rebuilds else []
    return [*kind.columns(), *beside]


def first_kind(row: Row) -> LeakKind | None:
    """Return what a row is about first of all; None where nobody can judge it.

    A measurement without an attack says where a leak may sit; nobody got anything by it, so that it is about nothing.
    """
    return next((kind for kind in leak_kinds() if not kind.unjudged and kind.reading(row) is not None), None)


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
        >>> excess(Reading(name="mse", value=0.25, chance=1.0, leaks="low"))
        0.75
        >>> excess(Reading(name="psnr", value=20, chance=11, leaks="high"))
        9.0
    """
    return leakage(reading) - leakage(reading.model_copy(update={"value": reading.chance or 0.0}))
