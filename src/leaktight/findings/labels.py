"""Labels: what a feature party learns of them from cut gradients, and what can be read of them off an update."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, Literal

from leaktight.core.attack import Principle
from leaktight.core.display import capital, percent
from leaktight.core.metric import Reading
from leaktight.core.record import Record
from leaktight.findings.auc import auc_ends, chance_of, is_inverted, weight
from leaktight.findings.column import NOTHING, Column, chance, format_reading, result, value_of
from leaktight.findings.display import name_of, title_of
from leaktight.findings.kind import Axis, Distance, LeakKind, Severity, is_beyond
from leaktight.findings.label_leak import (
    CEILING,
    FEATURES,
    LEAK_AUC,
    PASSES,
    TAIL,
    THEORY,
    place_of,
    strongest_layer,
    tail_of,
    tells_labels,
)
from leaktight.findings.layer_measure import LayerMeasure, asks_class, question_of
from leaktight.findings.passes import passes_of
from leaktight.findings.rows import Row
from leaktight.findings.threats import name_of_seat
from leaktight.metrics.property_auc import PROPERTY_AUC

if TYPE_CHECKING:
    from leaktight.findings.verdict import Judgement

LABELS = "label_distance"
EXACT_AUC = 0.999
"""The leak AUC from which a control cell of split learning counts as exact.

Of a thousand pairs one may be a tie of rounding.
"""
AUC = "auc"
MEANS = {
    "gradient_norm": "from the length of gradients alone",
    "direction": "from the direction of gradients, with one known positive",
    "inner_product": "from inner products of gradients, with a known positive",
    "few_hints": "from gradients, with a few known labels",
    "clustering": "by dividing the gradients in two, without any known label",
}
"""What each attack needs, in words."""
AUC_WORDS = {
    "Leak AUC": "How likely a positive example of a training step is placed above a negative one by the attacker: 1 "
    "tells all labels, 0.5 is guessing. For an attack that cannot know which side is positive, the larger of the AUC "
    "and 1 minus it, so that guessing gets somewhat more than 0.5. Its chance level is what scores reach that know "
    "nothing, for as many positives and negatives; before the cut, where either order counts, at least what the rows "
    "of the message reach when dealt out to other examples. The number is the median over steps, each by itself. Who "
    "sees an example in many steps adds up and sees more: where that was measured, the verdict rests on it.",
    "95 % quantile": "The leak AUC that one step in twenty exceeds.",
    "Cut": "Where the model is divided: the feature party sends what its part makes of its columns, and gets back a "
    "gradient for each example. From that it works out the gradients at its own layers.",
    "Test AUC": "The same measure for the trained model on test data. Here high is good. A point is a hundredth.",
}
"""What the words of leak AUC mean."""


class Labels(LeakKind):
    """Labels behind messages: the leak AUC in split learning, elsewhere the share of labels read correctly."""

    kind: Literal["labels"] = "labels"
    rank: ClassVar[int] = 20
    heading: ClassVar[str] = "Labels"
    noun: ClassVar[str] = "labels"
    of_examples: ClassVar[bool] = True
    names: ClassVar[tuple[str, ...]] = (LEAK_AUC, TAIL, PASSES, FEATURES, THEORY, CEILING, LABELS)
    by_example: ClassVar[tuple[str, ...]] = (LABELS,)
    joined: ClassVar[str] = PASSES
    control: ClassVar[str] = (
        "of labels has a label party with one linear layer and no defence: there the cosine with a known positive must "
        f"tell every label (AUC of at least {EXACT_AUC:g} in every step), or the instruments are broken."
    )
    distances: ClassVar[tuple[Distance, ...]] = (Distance("membership", LABELS, order=10),)
    layer: ClassVar[LayerMeasure | None] = LayerMeasure(
        reading="label_auc",
        order=10,
        risk="labels",
        noun="the labels",
        head="label AUC",
        column="label AUC",
        question="are of one class",
        question_in=lambda scenario, names: question_of(scenario, names) if asks_class(scenario) else "",
        measured=PROPERTY_AUC,
        prefix="label_",
        word="label",
        information="label_v_information",
    )
    sections: ClassVar[tuple[str, ...]] = (
        "leaktight.report.label_leak:labels_section",
        "leaktight.report.norms:norms_section",
    )

    def reading(self, row: Row) -> Reading | None:
        """Return the leak AUC at the layer that tells most; else the share of labels missed.

        The AUC is over all passes if they were added up.
        """
        return strongest_layer(row.readings) or row.reading(LABELS, "raw") or row.reading(LABELS)

    def unit(self, row: Row) -> str:
        """Let AUCs of one message and of several passes be compared: both have their own chance level."""
        reading = self.reading(row)
        return AUC if tells_labels(reading) else super().unit(row)

    def units(self) -> tuple[str, ...]:
        """Let the AUC decide."""
        return (AUC,)

    def severity(self, row: Row) -> Severity:
        """Rank attacks by what they tell in the median step, then in the worst; each beyond its own chance level."""
        reading = self.reading(row)
        if reading is not None and tells_labels(reading):
            return weight(reading, self._tail(row))
        return super().severity(row)

    def is_read(self, row: Row, width: float = 1.0) -> bool:
        """Return whether labels are told beyond chance, either way round."""
        reading = self.reading(row)
        return reading is not None and (is_beyond(reading, width) or (tells_labels(reading) and is_inverted(reading)))

    def contradictions(self, row: Row, width: float = 1.0) -> tuple[str, ...]:
        """Say so where labels are told in the worst steps."""
        tail = self._tail(row)
        if tail is None or not is_beyond(tail, width):
            return ()
        return (
            f"in the worst steps they are told with AUC {tail.value:.2f}, where guessing gets {chance_of(tail):.2f}",
        )

    def comes_beside(self, row: Row) -> bool:
        """Return whether labels come with an update."""
        return self.unit(row) == LABELS

    def principle(self, row: Row) -> Principle | None:
        """Take labels that come with an update for read off by algebra, whatever the attack does next."""
        return "algebra" if self.comes_beside(row) else super().principle(row)

    def failures(self, row: Row) -> Reading | None:
        """Return nothing for labels that come with an update: nobody searches for them alone."""
        return None if self.comes_beside(row) else super().failures(row)

    def amount(self, row: Row) -> float:
        """Return what an AUC tells beyond chance, as a part of all there is.

        Attacks have chance levels of their own.
        """
        reading = self.reading(row)
        return weight(reading)[0] if reading is not None and tells_labels(reading) else super().amount(row)

    def clause(self, row: Row) -> str:
        """Say who tells labels, from what, and how well."""
        reading = self.reading(row)
        if reading is None:
            return "nothing was measured"
        if not tells_labels(reading):
            blind = (
                "" if reading.chance is None else f", where the best blind answer gets {percent(1 - reading.chance)}"
            )
            return f"{percent(1 - reading.value)} of the labels behind a message are read correctly{blind}"
        count = len(reading.each) // max(len(row.seeds), 1)
        passes = "" if reading.name != PASSES else f" after {count} passes" if count > 1 else " over all passes"
        other_way = f", which is as good as {1 - reading.value:.2f} the other way round" if is_inverted(reading) else ""
        ends = "" if reading.low is None or reading.high is None else f" ({reading.low:.2f} to {reading.high:.2f})"
        how = MEANS.get(row.kind, "from the gradients")
        return (
            f"{name_of_seat(row.seat)} tells labels with AUC {reading.value:.2f}{ends}{passes}{other_way} {how}, "
            f"where guessing gets {chance_of(reading):.2f}"
        )

    def headline(self, row: Row) -> str:
        """Say how well labels are told, and no more."""
        reading = self.reading(row)
        if reading is None:
            return self.clause(row)
        if not tells_labels(reading):
            blind = "" if reading.chance is None else f" (a blind answer gets {percent(1 - reading.chance)})"
            return f"{percent(1 - reading.value)} of the labels are read{blind}"
        value = 1 - reading.value if is_inverted(reading) else reading.value
        return f"labels are told with AUC {value:.2f} (guessing gets {chance_of(reading):.2f})"

    def short(self, row: Row) -> str:
        """Return the AUC, or the share of labels read."""
        reading = self.reading(row)
        if reading is None:
            return "nothing"
        return f"{reading.value:.2f}" if tells_labels(reading) else percent(1 - reading.value)

    def measure(self, row: Row) -> str:
        """Say what is told."""
        return (
            "AUC, how well labels are told"
            if tells_labels(self.reading(row))
            else "of the labels behind a message are read"
        )

    def detail(self, row: Row) -> str:
        """Name what the worst steps tell, the attack, the layer and the setting."""
        reading = self.reading(row)
        if reading is None or not tells_labels(reading):
            return super().detail(row)
        tail = self._tail(row)
        worst = [] if tail is None else [f"95 % quantile over steps {tail.value:.2f}"]
        return "; ".join([*worst, f"{row.attack}, {place_of(reading)}", row.moment])

    def _leading_auc(self, row: Row) -> Reading | None:
        """Return the AUC of a row that is about labels first of all."""
        reading = self.leading_reading(row)
        return reading if tells_labels(reading) else None

    def _tail(self, row: Row) -> Reading | None:
        """Return what labels are told by in the worst steps, at the layer that such a row is judged by."""
        judged = self._leading_auc(row)
        return None if judged is None else tail_of(row.readings, judged.layer)

    def is_exact(self, record: Record) -> bool | None:
        """Return whether every label was told in every step."""
        reading = record.reading(LEAK_AUC, "raw")
        return None if reading is None else min(reading.each, default=reading.value) >= EXACT_AUC

    def is_tabled(self, row: Row) -> bool:
        """Return whether labels were told apart; those that come with an update have a column beside the examples."""
        return super().is_tabled(row) and tells_labels(self.reading(row))

    def columns(self) -> tuple[Column, ...]:
        """Return the leak AUC at the layer that tells most, its chance level, and what the worst steps tell."""
        return (
            Column("Leak AUC (95 %)", lambda row: result(row, self._leading_auc(row))),
            Column("Chance", lambda row: chance(self._leading_auc(row))),
            Column("95 % quantile", lambda row: value_of(self._tail(row))),
        )

    def beside(self) -> tuple[Column, ...]:
        """Return how many labels came with examples."""
        return (Column("Labels", lambda row: NOTHING if (r := row.reading(LABELS)) is None else percent(1 - r.value)),)

    def remarks(self, judgements: Sequence[Judgement]) -> Mapping[str, Sequence[str]]:
        """Return a line for each verdict that rests on scores added up over passes.

        The report has the lines of all attacks.
        """
        over_passes = [(one, passes) for one in judgements if (passes := passes_of(one.worst)) is not None]
        heading = "Labels over passes (AUC of the strongest attack; what features alone give is no leak of a message)"
        return {heading: [f"{capital(name_of(one.defence))}, {passes}" for one, passes in over_passes]}

    def numbers(self, rows: Sequence[Row]) -> tuple[Column, ...]:
        """Return the share of labels that come with an update."""
        return (Column("labels read", lambda row: format_reading(_hits(row.reading(LABELS)), percent), (LABELS,)),)

    def numbers_note(self, rows: Sequence[Row]) -> str:
        """Say what leak AUCs are."""
        if not any(map(self.is_tabled, rows)):
            return ""
        return (
            "Means over messages and seeds, for leak AUC the median over messages, with 95 % intervals. The columns of "
            "leak AUC are at the cut; what a row is judged by may be another layer."
        )

    def glossary(self, names: Collection[str], records: Sequence[Record]) -> dict[str, str]:
        """Explain how labels are read, or told apart, and where."""
        read = {
            "Labels read": "How many of the labels behind a message the attacker names correctly. The best blind "
            "answer is random labels, or the same labels for all messages, the commonest among those attacked; with "
            "few messages that is right more often than one class in all would be."
        }
        return {**(read if LABELS in names else {}), **(AUC_WORDS if LEAK_AUC in names else {})}

    def strength_axis(self, readings: Sequence[Reading]) -> Axis:
        """Draw an AUC from guessing to 1."""
        axis = super().strength_axis(readings)
        return axis._replace(ends=auc_ends(readings)) if tells_labels(readings[0]) else axis

    def hover(self, row: Row) -> tuple[str, ...]:
        """Say how well labels are told apart, and at which layer."""
        reading = self.reading(row)
        if reading is None or not tells_labels(reading):
            return ()
        return (f"{title_of(reading.name)}: {reading.value:.3f} {place_of(reading)}",)


def _hits(distance: Reading | None) -> Reading | None:
    """Turn the share of labels missed into the share of labels read."""
    if distance is None:
        return None
    ends = {"low": distance.high, "high": distance.low}
    missed_ends = {name: None if end is None else 1 - end for name, end in ends.items()}
    return distance.model_copy(update={"value": 1 - distance.value, **missed_ends})
