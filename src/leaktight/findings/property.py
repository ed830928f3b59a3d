"""Property: whether the examples behind a message have something in common that nobody was to know."""

from __future__ import annotations

from leaktight.core.metric import Reading
from leaktight.findings.kind import LeakKind, Severity, is_beyond
from leaktight.findings.label_leak import turned, weight
from leaktight.findings.property_leak import GUESSING, UNNAMED, strongest_property, tells_property, whence
from leaktight.findings.rows import Row

SEATS = {"server": "the server", "wire": "someone on the wire"}


class Property(LeakKind):
    """A private property of the examples behind a message, by the AUC with which it is told."""

    name = "property"
    heading = "Private property"
    noun = "the private property"
    of_examples = False

    def reading(self, row: Row) -> Reading | None:
        """Return the AUC of all layers together, unless a single layer surely tells more."""
        return strongest_property(row.readings)

    def severity(self, row: Row) -> Severity:
        """Rank attacks by what they tell beyond chance."""
        reading = self.reading(row)
        return () if reading is None else weight(reading)

    def is_read(self, row: Row, width: float = 1.0) -> bool:
        """Return whether the property is told beyond chance, either way round."""
        reading = self.reading(row)
        return reading is not None and (is_beyond(reading, width) or turned(reading))

    def amount(self, row: Row) -> float:
        """Return what is told beyond chance, either way round."""
        reading = self.reading(row)
        return 0.0 if reading is None else weight(reading)[0]

    def found(self, row: Row) -> str:
        """Say who tells what, and how well."""
        reading = self.reading(row)
        if reading is None:
            return "nothing was measured"
        who = SEATS.get(row.seat, f"the participant {row.seat}" if row.seat else "the attacker")
        ends = "" if reading.low is None or reading.high is None else f"{reading.low:.2f} to {reading.high:.2f}; "
        chance = GUESSING if reading.chance is None else reading.chance
        other_way = f", as good as {1 - reading.value:.2f} the other way round" if turned(reading) else ""
        return (
            f"from one shared message {who} tells whether its examples {row.asked or UNNAMED} with AUC {reading.value:.2f} "
            f"({ends}guessing gets {chance:.2g}){other_way}"
        )

    def short(self, row: Row) -> str:
        """Return the AUC."""
        reading = self.reading(row)
        return "nothing" if reading is None else f"{reading.value:.2f}"

    def measure(self, row: Row) -> str:
        """Say what is told."""
        return f"AUC, how well it is told whether examples {row.asked or UNNAMED}"

    def detail(self, row: Row) -> str:
        """Name the attack, the layers and the setting; and a single layer, if its AUC is larger than what the row is judged by."""
        reading = self.reading(row)
        if reading is None:
            return super().detail(row)
        single = [one for one in row.readings if tells_property(one) and one.value > reading.value]
        best = max(single, key=lambda one: one.value, default=None)
        alone = [] if best is None else [f"{best.layer} alone {best.value:.2f}"]
        return "; ".join([f"{row.attack} on {whence(reading)}", *alone, row.moment])
