"""Layer measures: what an attack on a single layer gets of a kind of leak, and how that is ranked, said and shown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from leaktight.core.scenario import Scenario

SENSITIVITY = "sensitivity_f"
ASKED = ("v_information", "property_sensitivity")
"""How the names of readings begin that are about what is asked, without naming an attack."""


def _nothing(scenario: Scenario, class_names: Sequence[str]) -> str:
    return ""


class LayerMeasure(NamedTuple):
    """How much a single layer gives away of one kind of leak.

    Args:
        reading: what an attack on the layer alone gets.
        order: where it stands among other measures.
        risk: what rankings in files call it.
        noun: what sentences call it.
        head: what stands above its column and its axis in the report.
        column: what stands above its column on the terminal.
        asked: what the attack asks of the examples behind a message, read as an AUC; empty if it rebuilds them instead.
        asked_in: says the same of one scenario, given what its classes are called; nothing where something else is
            asked.
        measured: what records call the reading, where several measures share it; by default the reading itself.
        prefix: what stands before other readings of its scenarios, to tell them from those of another measure.
        digits: how many digits follow the point.
        unit: what follows the number.
        word: what measures of information call it; empty if none speaks of it.
        information: the V-information of it; empty if there is none.
        by_sensitivity: whether sensitivity alone ranks layers by it.
    """

    reading: str
    order: int
    risk: str
    noun: str
    head: str
    column: str
    asked: str = ""
    asked_in: Callable[[Scenario, Sequence[str]], str] = _nothing
    measured: str = ""
    prefix: str = ""
    digits: int = 2
    unit: str = ""
    word: str = ""
    information: str = ""
    by_sensitivity: bool = False

    def rename(self, name: str) -> str:
        """Return what to call a reading of one of its scenarios, where readings of several measures meet."""
        if name == self.measured:
            return self.reading
        return f"{self.prefix}{name}" if name.startswith(ASKED) else name

    @property
    def ranks(self) -> tuple[str, ...]:
        """The readings by which layers are ranked, the best first: the attack's, then those that need none."""
        return (self.reading, self.information, SENSITIVITY) if self.information else (self.reading,)

    @property
    def needs(self) -> tuple[str, ...]:
        """The readings of which one must be there."""
        return self.ranks if self.by_sensitivity else self.ranks[:2]
