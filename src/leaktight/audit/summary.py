"""Summary: everything a report or a terminal says about an audit, from its records alone."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Mapping

from leaktight.audit.characteristic import Curve, curves_of
from leaktight.audit.rows import Row, rows_of, threshold_of
from leaktight.audit.verdict import Judgement, judge, verdict_of
from leaktight.core.record import Record, Status


@dataclasses.dataclass(frozen=True)
class Summary:
    """Everything a report or a terminal shows about results.

    Args:
        rows: one for each defence, attack and setting, undefended first, each kind from weak to strong.
        judgements: one for each defence, by the strongest attack against it.
        verdict: sentences for a reader who knows no attack by name.
        threshold: the PSNR in dB from which an image counts as recognised; None where no statement was measured.
        counts: how many cells were done, refused, failed.
        seeds: the seeds used.
        curves: how use and leakage change with the strength of each defence that was measured at several.
    """

    rows: tuple[Row, ...]
    judgements: tuple[Judgement, ...]
    verdict: tuple[str, ...]
    threshold: float | None
    counts: Mapping[Status, int]
    seeds: tuple[int, ...]
    curves: tuple[Curve, ...] = ()


def summarise(records: Iterable[Record]) -> Summary:
    """Return rows, judgements and verdict of an audit.

    Example:
        >>> summarise([]).verdict
        ('Nothing was measured, so nothing can be said.',)
    """
    records = list(records)
    rows = rows_of(records)
    judgements = judge(rows)
    return Summary(
        rows=rows,
        judgements=judgements,
        verdict=verdict_of(rows, judgements),
        threshold=threshold_of(records),
        counts=Counter(record.status for record in records),
        seeds=tuple(sorted({record.cell.seed for record in records})),
        curves=curves_of(rows),
    )
