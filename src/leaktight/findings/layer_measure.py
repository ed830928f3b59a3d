"""Layer measures: what an attack on a single layer gets of a kind of leak, and how that is ranked, said and shown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from leaktight.core.scenario import Scenario

SENSITIVITY = "sensitivity_f"
REMAINING, COUNT, BYTES, BASELINE = "remaining_auc", "sealed_layers", "sealed_bytes", "counting_auc"
"""What is told once a layer and those before it are sealed, how many these are, their size, and what labels tell."""
ASKED = ("v_information", "property_sensitivity", REMAINING, "sealed_", BASELINE)
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
        of_property: whether it is about the private property itself, which other measures stand in for.
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
    of_property: bool = False

    def rename(self, name: str) -> str:
        """Return what to call a reading of one of its scenarios, where readings of several measures meet."""
        if self.measured and name.startswith(self.measured):
            return f"{self.reading}{name.removeprefix(self.measured)}"
        return f"{self.prefix}{name}" if name.startswith(ASKED) else name

    @property
    def ranks(self) -> tuple[str, ...]:
        """The readings by which single layers are compared, the best first: the attack's, then its information.

        Sensitivity is not among them: it follows the size of a layer, and runs against the attack.
        """
        return (self.reading, self.information) if self.information else (self.reading,)

    def named(self, reading: str) -> str:
        """Return what a reading that several measures have is called for this one."""
        return f"{self.prefix}{reading}"
