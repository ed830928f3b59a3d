"""A page: what a report is made from, and the sections it is made of."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

from torch import Tensor

from leaktight.core.record import Record
from leaktight.findings.advice import Advice, advise
from leaktight.findings.flags import Flag, raise_flags
from leaktight.findings.summary import AuditSummary, summarise
from leaktight.plans.plan import Plan
from leaktight.report.palette import Palette

Pictures = Callable[[str], Mapping[str, Tensor] | None]
"""From a cell's key to its images: `truth_raw`, `truth_used`, `guess`, and labels."""


@dataclasses.dataclass(frozen=True)
class Page:
    """Everything a section may draw from.

    Args:
        records: what was measured; already without single images' values if redacted.
        plan: what was to be measured.
        versions: what it was measured with.
        pictures: where images come from; a redacted page has none.
        redact: whether the page is to be passed on.
    """

    records: tuple[Record, ...]
    plan: Plan
    versions: Mapping[str, str]
    pictures: Pictures
    redact: bool
    summary: AuditSummary
    flags: tuple[Flag, ...]
    advice: tuple[Advice, ...]

    @classmethod
    def of(
        cls,
        records: Sequence[Record],
        plan: Plan,
        versions: Mapping[str, str],
        pictures: Pictures,
        redact: bool,
        whole: Sequence[Record] | None = None,
        summary: AuditSummary | None = None,
    ) -> Page:
        """Summarise records, unless that was done, and gather the rest.

        `whole` are the records before they were redacted, if they were.
        """
        summary = summary or summarise(records, whole)
        return cls(
            tuple(records),
            plan,
            versions,
            pictures,
            redact,
            summary,
            raise_flags(records, plan.caveats),
            advise(summary),
        )

    @cached_property
    def palette(self) -> Palette:
        """The colours of the defences, in the order of the plan."""
        return Palette.of([*self.plan.defences, *(record.cell.defence for record in self.records)])

    @property
    def missing(self) -> int:
        """How many planned cells have no record."""
        return len({cell.key for cell in self.plan.cells()} - {record.cell.key for record in self.records})


@dataclasses.dataclass(frozen=True)
class Section:
    """One part of the page.

    Args:
        anchor: its name in links.
        title: its heading.
        template: the file in this folder that shows it; of a section from another package, empty.
        text: the template itself, in place of a file.
        values: what the template shows.
        private: whether it shows private pictures, unless the page is redacted.
        appendix: whether paper leaves it out, unless the reader ticks it.
    """

    anchor: str
    title: str
    template: str = ""
    values: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    text: str = ""
    private: bool = False
    appendix: bool = False


MakeSection = Callable[[Page], Section | None]
