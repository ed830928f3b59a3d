"""Batch statistics: means and variances of a batch that come with a message, beside gradients."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import ClassVar, Literal

from leaktight.core.display import percent
from leaktight.core.metric import Reading
from leaktight.core.record import Record
from leaktight.findings.column import Column, chance, result
from leaktight.findings.kind import LeakKind
from leaktight.findings.rows import Row

ERROR = "statistics_error"


class BatchStatistics(LeakKind):
    """Means and variances of a batch at batch norm layers, by the relative error with which they are read."""

    kind: Literal["batch_statistics"] = "batch_statistics"
    rank: ClassVar[int] = 40
    heading: ClassVar[str] = "Batch statistics"
    noun: ClassVar[str] = "means and variances of a batch"
    names: ClassVar[tuple[str, ...]] = (ERROR,)
    chart: ClassVar[str] = "error of batch statistics"

    def reading(self, row: Row) -> Reading | None:
        """Return the error of the attack itself, or of the one of several that reads statistics."""
        read = (part.reading(ERROR) for part in (row, *row.alone))
        return next((reading for reading in read if reading is not None), None)

    def clause(self, row: Row) -> str:
        """Say how near the answer comes."""
        reading = self.reading(row)
        if reading is None:
            return "nothing was measured"
        said = f"the means and variances of a batch are read with an error of {self.short(row)}"
        return (
            said if reading.chance is None else f"{said}, where those known before are off by {_share(reading.chance)}"
        )

    def short(self, row: Row) -> str:
        """Return the error."""
        reading = self.reading(row)
        return "nothing" if reading is None else _share(reading.value)

    def measure(self, row: Row) -> str:
        """Say what it is."""
        return "error of the batch's means and variances"

    def columns(self) -> tuple[Column, ...]:
        """Return the error and the chance level."""
        return (
            Column("Error of batch statistics (95 %)", lambda row: result(row, self.reading(row))),
            Column("Chance", lambda row: chance(self.reading(row))),
        )

    def verdict_note(self, rows: Sequence[Row], records: Sequence[Record]) -> str:
        """Say where the statistics come from; nothing where none were read."""
        if all(self.reading(row) is None for row in rows):
            return ""
        return (
            "Batch norm in training mode sends its running statistics along with every message; a batch's own follow "
            "from how they moved."
        )

    def glossary(self, names: Collection[str], records: Sequence[Record]) -> Mapping[str, str]:
        """Explain what is read."""
        if ERROR not in names:
            return {}
        return {
            "batch statistics": "The mean and the variance of each channel that a batch norm layer saw. At the first "
            "layer they describe the private examples themselves; attacks also use them to find the examples. Chance "
            "is the error of the running statistics that were handed out before the message."
        }


def _share(value: float) -> str:
    """Show a share, small ones too.

    Example:
        >>> _share(0.25), _share(0.00123), _share(0.00000123)
        ('25 %', '0.12 %', 'less than 0.01 %')
    """
    if value >= 0.01:
        return percent(value)
    return f"{100 * value:.2g} %" if value >= 1e-4 else "less than 0.01 %"
