"""Passes: what the scores of a label attack tell after each pass over the data, and what stands beside that."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from statistics import fmean

from leaktight.core.metric import Reading
from leaktight.findings.label_leak import CEILING, FEATURES, LEAK_AUC, PASSES, THEORY, place_of, strongest_layer
from leaktight.findings.rows import Row

BESIDE = {
    LEAK_AUC: "one message",
    PASSES: "all passes",
    FEATURES: "features alone",
    THEORY: "theory",
    CEILING: "ceiling of the bound",
}
"""The AUCs of one attack on labels, and what they are called."""


@dataclasses.dataclass(frozen=True)
class LabelPasses:
    """What one attack on labels gets, at the layer that it is judged by.

    Args:
        row: where it was measured.
        aucs: by name, in the order of `BESIDE`; those that were measured.
        curve: the AUC after one pass, two, and so on, the mean over seeds; empty where single values were not kept.
    """

    row: Row
    aucs: dict[str, Reading]
    curve: tuple[float, ...]

    @property
    def place(self) -> str:
        """At which layer."""
        return place_of(self.aucs[PASSES])

    def __str__(self) -> str:
        """Say all of them in one line."""
        said = [f"{name} {self.aucs[reading].value:.2f}" for reading, name in BESIDE.items() if reading in self.aucs]
        many = f" ({len(self.curve)} passes)" if self.curve else ""
        return f"{self.row.attack}, {self.place}{many}: {', '.join(said)}"


def passes_of(row: Row) -> LabelPasses | None:
    """Return what a row holds over passes; None if its scores were not added up."""
    judged = strongest_layer(row.readings)
    if judged is None or judged.name != PASSES:
        return None
    found = {
        reading.name: reading
        for reading in reversed(row.readings)
        if reading.name in BESIDE and reading.layer in (None, judged.layer)
    }
    found |= {r.name: r for r in reversed(row.readings) if r.name in BESIDE and r.layer == judged.layer}
    return LabelPasses(
        row, {name: found[name] for name in BESIDE if name in found}, curve_of(found[PASSES], len(row.seeds))
    )


def curve_of(reading: Reading, seeds: int) -> tuple[float, ...]:
    """Return the AUC after each number of passes, the mean over seeds.

    A pooled reading holds one seed's values after the other's.

    Example:
        >>> curve_of(Reading(name="leak_auc_passes", value=0.9, each=(0.6, 0.8, 0.8, 1.0)), seeds=2)
        (0.7, 0.9)
    """
    count = len(reading.each) // max(seeds, 1)
    if not count or count * seeds != len(reading.each):
        return ()
    by_seed: Sequence[Sequence[float]] = [
        reading.each[start : start + count] for start in range(0, len(reading.each), count)
    ]
    return tuple(map(fmean, zip(*by_seed, strict=True)))
