"""Labels: what a feature party tells of them from cut gradients, and what can be read of them off an update."""

from __future__ import annotations

from leaktight.core.attack import Principle
from leaktight.core.display import percent
from leaktight.core.metric import Reading
from leaktight.findings.kind import LeakKind, Severity, is_beyond
from leaktight.findings.label_leak import GUESSING, PASSES, place_of, strongest_layer, tells_labels, turned, weight
from leaktight.findings.rows import LABELS, Row

AUC = "auc"
MEANS = {
    "gradient_norm": "from the length of gradients alone",
    "direction": "from the direction of gradients, with one known positive",
    "inner_product": "from inner products of gradients, with a known positive",
    "few_hints": "from gradients, with a few known labels",
    "clustering": "by dividing the gradients in two, without any known label",
}
"""What each attack needs, in words."""
SEATS = {"feature-party": "the feature party", "wire": "someone on the wire", "label-party": "the label party"}


class Labels(LeakKind):
    """Labels behind messages: the leak AUC in split learning, elsewhere the share of labels read correctly."""

    name = "labels"
    heading = "Labels"
    noun = "labels"

    def reading(self, row: Row) -> Reading | None:
        """Return the leak AUC at the layer that tells most, over all passes if they were added up; else the share of labels missed."""
        return strongest_layer(row.readings) or row.reading(LABELS, "raw") or row.reading(LABELS)

    def unit(self, row: Row) -> str:
        """Let AUCs of one message and of several passes be compared: both have their own chance level."""
        reading = self.reading(row)
        return AUC if tells_labels(reading) else super().unit(row)

    def units(self) -> tuple[str, ...]:
        """Let the AUC decide."""
        return (AUC,)

    def severity(self, row: Row) -> Severity:
        """Rank attacks by what they tell in the median step, then in the worst steps; each beyond its own chance level."""
        reading = self.reading(row)
        if reading is not None and tells_labels(reading):
            return weight(reading, row.tail)
        return super().severity(row)

    def is_read(self, row: Row, width: float = 1.0) -> bool:
        """Return whether labels are told beyond chance, either way round."""
        reading = self.reading(row)
        return reading is not None and (is_beyond(reading, width) or turned(reading))

    def contradictions(self, row: Row, width: float = 1.0) -> tuple[str, ...]:
        """Say so where labels are told in the worst steps."""
        reading, tail = self.reading(row), row.tail
        if tail is None or not tells_labels(reading) or not is_beyond(tail, width):
            return ()
        return (f"in the worst steps they are told with AUC {tail.value:.2f}, where guessing gets {_chance(tail):.2f}",)

    def principle(self, row: Row) -> Principle | None:
        """Take labels that come with an update for read off by algebra, whatever the attack does next."""
        return "algebra" if self.unit(row) == LABELS else super().principle(row)

    def failed(self, row: Row) -> Reading | None:
        """Return nothing for labels that come with an update: nobody searches for them alone."""
        return None if self.unit(row) == LABELS else super().failed(row)

    def amount(self, row: Row) -> float:
        """Return what an AUC tells beyond chance, as a part of all there is: attacks have chance levels of their own."""
        reading = self.reading(row)
        return weight(reading)[0] if reading is not None and tells_labels(reading) else super().amount(row)

    def found(self, row: Row) -> str:
        """Say who tells labels, from what, and how well."""
        reading = self.reading(row)
        if reading is None:
            return "nothing was measured"
        if not tells_labels(reading):
            guessing = "" if reading.chance is None else f", where guessing gets {percent(1 - reading.chance)}"
            return f"{percent(1 - reading.value)} of the labels behind a message are read correctly{guessing}"
        count = len(reading.each) // max(len(row.seeds), 1)
        passes = "" if reading.name != PASSES else f" after {count} passes" if count > 1 else " over all passes"
        other_way = f", which is as good as {1 - reading.value:.2f} the other way round" if turned(reading) else ""
        ends = "" if reading.low is None or reading.high is None else f" ({reading.low:.2f} to {reading.high:.2f})"
        how = MEANS.get(row.kind, "from the gradients")
        return f"{_who(row)} tells labels with AUC {reading.value:.2f}{ends}{passes}{other_way} {how}, where guessing gets {_chance(reading):.2f}"

    def short(self, row: Row) -> str:
        """Return the AUC, or the share of labels read."""
        reading = self.reading(row)
        if reading is None:
            return "nothing"
        return f"{reading.value:.2f}" if tells_labels(reading) else percent(1 - reading.value)

    def measure(self, row: Row) -> str:
        """Say what is told."""
        return "AUC, how well labels are told" if tells_labels(self.reading(row)) else "of the labels behind a message are read"

    def detail(self, row: Row) -> str:
        """Name what the worst steps tell, the attack, the layer and the setting."""
        reading = self.reading(row)
        if reading is None or not tells_labels(reading):
            return super().detail(row)
        worst = [] if row.tail is None else [f"95 % quantile over steps {row.tail.value:.2f}"]
        return "; ".join([*worst, f"{row.attack}, {place_of(reading)}", row.moment])


def _who(row: Row) -> str:
    return SEATS.get(row.seat, "the attacker")


def _chance(reading: Reading) -> float:
    return GUESSING if reading.chance is None else reading.chance
