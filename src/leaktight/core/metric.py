"""Metrics: guess and truth in, reading out."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal, Self

from pydantic import Field

from leaktight.core import registry
from leaktight.core.attack import Guess
from leaktight.core.random import Stream
from leaktight.core.run import GroundTruth
from leaktight.core.task import Batch
from leaktight.core.value import Registered, Value

Direction = Literal["high", "low"]

MESSAGE = "message"
"""The claim of a metric that speaks of the attacked messages themselves: it reads whatever the guess claims."""


@dataclasses.dataclass(frozen=True)
class Quantity:
    """What the readings of one name measure, and how people are shown them.

    Args:
        title: what it is called, as inside a sentence.
        unit: its unit; `%` of a share, whose readings lie in [0, 1]; empty for a plain number.
        digits: how many digits follow the point; None for three significant ones.
        leaks: whether a high or a low value means more leakage; None for a number that is not about leakage.

    Example:
        >>> psnr, share = Quantity("PSNR", "dB", digits=1, leaks="high"), Quantity("images recognised", "%", digits=0)
        >>> psnr.number(23.456), psnr.heading, share.number(0.25), share.heading
        ('23.5', 'PSNR (dB)', '25 %', 'images recognised')
    """

    title: str
    unit: str = ""
    digits: int | None = None
    leaks: Direction | None = None

    @property
    def heading(self) -> str:
        """The title of an axis or a column: with the unit, unless each number brings its own or is drawn as a share."""
        return self.title if self.unit in ("", "%") else f"{self.title} ({self.unit})"

    def number(self, value: float) -> str:
        """Show a value, without a unit that the heading names."""
        if self.unit == "%":
            return f"{100 * value:.{self.digits or 0}f} %"
        return f"{value:.3g}" if self.digits is None else f"{value:.{self.digits}f}"


class Reading(Value):
    """One measured number with what is needed to judge it.

    Args:
        name: the metric's name.
        value: the number.
        low: the lower end of its 95 % interval; None if it has none.
        high: the upper end.
        n: how many independent things it was measured on.
        chance: what an attacker who saw nothing would get; None if there is no such level.
        leaks: whether a high or a low value means more leakage; None for a number that is not about leakage.
        against: the examples it was scored against: `raw` as the party holds them, `used` as the gradient saw them.
        layer: the layer it belongs to, if any.
        each: the value for each thing measured, in order.
        by: which attack of several reached it; empty for the attack itself, and for the answer of an attacker who has
            them all.
        outcomes: of a model's utility, what became of each test row, packed (`statistics.outcomes`), so that two models
            can be compared on the same rows. It is private like the rows: it is kept in an audit's folder and never
            passed on. Empty if it was not kept.
    """

    name: str
    value: float
    low: float | None = None
    high: float | None = None
    n: int = 1
    chance: float | None = None
    leaks: Direction | None = None
    against: Literal["raw", "used"] | None = None
    layer: str | None = None
    each: tuple[float, ...] = ()
    by: str = Field("", exclude_if=lambda by: not by)
    outcomes: str = Field("", repr=False, exclude_if=lambda outcomes: not outcomes)

    def beats_chance(self) -> bool:
        """Whether the whole interval lies on the leaking side of the chance level.

        Without an interval nobody can say so.
        """
        if self.chance is None or self.low is None or self.high is None:
            return False
        return self.low > self.chance if self.leaks == "high" else self.leaks == "low" and self.high < self.chance

    def without_outcomes(self) -> Self:
        """Return it without what became of each test row."""
        return self.model_copy(update={"outcomes": ""}) if self.outcomes else self


class Metric(Registered):
    """Something that grades a guess.

    `claim` is the part of a guess it grades, `leaks` which direction is worse, if any.

    `title`, `unit` and `digits` say how its reading is shown. A metric with several readings, or with one that is not
    named by its kind, states all of them in `quantities`.

    Claims are those of an attack (`inputs`, `labels`, `scores`, `property`, `samples`, `statistics`), or `message`:
    such a metric compares what was sent with what would have been sent undefended. The guess tells it only which
    messages were attacked.
    """

    family: ClassVar[str] = "metric"
    claim: ClassVar[str] = ""
    leaks: ClassVar[Direction | None] = "high"
    unit: ClassVar[str] = ""
    digits: ClassVar[int | None] = None
    learns_from_public: ClassVar[bool] = False
    """Whether public examples are part of the instrument, such as what a classifier is learned from.

    It does not matter whether the attacker has them.
    """

    @classmethod
    def quantities(cls) -> Mapping[str, Quantity]:
        """Return what it reads, by the names of its readings: one named by its kind, unless it states others."""
        return {str(cls.model_fields["kind"].default): Quantity(cls.title, cls.unit, cls.digits, cls.leaks)}

    @abc.abstractmethod
    def grade(
        self, guess: Guess, truth: Sequence[GroundTruth], rng: Stream, public: Batch | None = None
    ) -> Sequence[Reading]:
        """Compare a guess with the truth behind its messages, in the order of the guess's keys.

        Args:
            guess: what the attack claims; where the threat model grants labels, and it guesses none, with these.
            truth: the other side of each message.
            rng: for intervals.
            public: public examples that the threat model grants the attacker, if any; the chance level is the best that
                an answer without any message would score. A metric that `learns_from_public` gets them in any case.
        """


MEASURING = ("metric", "probe", "scenario")
"""The families whose classes make readings, and state in `quantities` which."""
_SHARE, _LABEL = "_share", "label_"


def quantity_of(reading: str) -> Quantity:
    """Return what readings of this name measure, as the class that makes them states it; else by the name alone.

    A name that ends in `_share` is that of a quantity as a share of all there is. One that begins with `label_` is that
    of a quantity where a class stands in the place of the private property.

    Example:
        >>> quantity_of("psnr").unit, quantity_of("v_information_share").title, quantity_of("label_sensitivity_f").title
        ('dB', 'V-information, share', 'sensitivity (F) (training with classes)')
        >>> quantity_of("something_new")
        Quantity(title='something new', unit='', digits=None, leaks=None)
    """
    stated = {
        name: quantity
        for family in MEASURING
        for part in registry.classes(family).values()
        for name, quantity in part.quantities().items()
    }
    return _find(reading, stated)


def _find(reading: str, stated: Mapping[str, Quantity]) -> Quantity:
    whole = reading.removesuffix(_SHARE)
    if reading in stated:
        return stated[reading]
    if whole not in stated and whole.startswith(_LABEL):
        asked = _find(reading.removeprefix(_LABEL), stated)
        return dataclasses.replace(asked, title=f"{asked.title} (training with classes)")
    quantity = stated.get(whole, Quantity(whole.replace("_", " ")))
    if whole == reading:
        return quantity
    return dataclasses.replace(quantity, title=f"{quantity.title}, share", unit="%", digits=1)
