"""Layer measures: what an attack on a single layer asks, what it gets of a kind of leak, and how that is ranked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from leaktight.core import registry
from leaktight.data.source import Source
from leaktight.findings.display import class_name

if TYPE_CHECKING:
    from leaktight.core.scenario import Scenario

SENSITIVITY = "sensitivity_f"
REMAINING, COUNT, BYTES, BASELINE = "remaining_auc", "sealed_layers", "sealed_bytes", "counting_auc"
"""What is told once a layer and those before it are sealed, how many these are, their size, and what labels tell."""
UNNAMED = "have the private property"
"""What is asked where the data does not name it."""
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
        question: what the attack asks of the examples behind a message, read as an AUC; empty if it rebuilds them.
        question_in: says the same of one scenario, given what its classes are called; nothing where something else is
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
    question: str = ""
    question_in: Callable[[Scenario, Sequence[str]], str] = _nothing
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

    def reading_name(self, reading: str) -> str:
        """Return what a reading that several measures have is called for this one."""
        return f"{self.prefix}{reading}"


def question_of(scenario: Scenario | None, class_names: Sequence[str] = ()) -> str:
    """Say what an attack on the property asks of the examples, as far as the settings of the data tell.

    Nothing is loaded.

    Args:
        scenario: where it was measured.
        class_names: what its classes are called.

    Example:
        >>> from leaktight.data import Parity
        >>> from leaktight.learning import Federated
        >>> from leaktight.models import MLP
        >>> question_of(Federated(data=Parity(), model=MLP()))
        'have the property `6 or more`'
    """
    data = None if scenario is None else scenario.to_dict().get("data")
    return _question(data, class_names) if isinstance(data, dict) else UNNAMED


def asks_class(scenario: Scenario) -> bool:
    """Return whether a class stands in the place of the property, so that what is told of it is told of labels."""
    data = scenario.to_dict().get("data")
    return isinstance(data, dict) and data.get("kind") == "class_property"


def _question(data: dict[str, Any], class_names: Sequence[str]) -> str:
    if data.get("kind") == "class_property":
        label = data.get("label")
        return (
            f"are of class {class_name(label, class_names)}" if isinstance(label, int) else "are of the commonest class"
        )
    named = data.get("private_property")
    name = " or ".join(map(str, named)) if isinstance(named, list) else named
    if not isinstance(name, str) or not name:
        source = registry.classes(Source.family).get(str(data.get("kind")))
        return f"have the property `{source.property_title}`" if source and source.property_title else UNNAMED
    name = f"not {name}" if data.get("private_property_absent") else name
    positive = data.get("private_property_positive")
    return f"have the property `{name}: {positive}`" if positive else f"have the property `{name}`"
