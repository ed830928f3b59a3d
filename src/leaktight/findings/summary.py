"""Summary: everything a report or a terminal says about an audit, from its records alone."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from leaktight.core.record import Record, Status
from leaktight.findings.characteristic import Curve, curves_of
from leaktight.findings.rows import Row, rows_of
from leaktight.findings.sentence import sentence_of
from leaktight.findings.verdict import Judgement, judge

NOTHING = "Nothing was measured, so nothing can be said."


@dataclasses.dataclass(frozen=True)
class AuditSummary:
    """Everything a report or a terminal shows about results.

    Args:
        rows: one for each defence, attack and setting, undefended first, each kind from weak to strong.
        judgements: one for each defence and kind of leak, by the strongest attack against it.
        verdict: sentences for a reader who knows no attack by name, one for each judgement.
        counts: how many cells were done, refused, failed.
        seeds: the seeds used.
        curves: how use and leakage change with the strength of each defence that was measured at several.
    """

    rows: tuple[Row, ...]
    judgements: tuple[Judgement, ...]
    verdict: tuple[str, ...]
    counts: Mapping[Status, int]
    seeds: tuple[int, ...]
    curves: tuple[Curve, ...] = ()

    @property
    def tabled(self) -> tuple[Row, ...]:
        """What tables show: the rows, and after each suite those of its attacks that a verdict rests on."""
        decisive = [judgement.worst for judgement in self.judgements if judgement.suite is not None]
        return tuple(
            shown
            for row in self.rows
            for shown in (row, *(part for part in row.alone if any(part is worst for worst in decisive)))
        )


def summarise(records: Iterable[Record], whole: Sequence[Record] | None = None) -> AuditSummary:
    """Return rows, judgements and verdict of an audit.

    Args:
        records: what was measured.
        whole: the same records before they were redacted, if they were: the verdict is the same for whoever reads it.

    Example:
        >>> summarise([]).verdict
        ('Nothing was measured, so nothing can be said.',)
    """
    records = list(records)
    rows = rows_of(records)
    judgements = judge(rows, None if whole is None else rows_of(whole))
    return AuditSummary(
        rows=rows,
        judgements=judgements,
        verdict=verdict_of(judgements),
        counts=Counter(record.status for record in records),
        seeds=tuple(sorted({record.cell.seed for record in records})),
        curves=curves_of(rows),
    )


def verdict_of(judgements: Sequence[Judgement]) -> tuple[str, ...]:
    """Return a sentence for each judgement; with the number of its scenario, if there are several."""
    several = len({judgement.scenario for judgement in judgements}) > 1
    said = [f"Scenario {one.scenario}. {sentence_of(one)}" if several else sentence_of(one) for one in judgements]
    return tuple(said) or (NOTHING,)
