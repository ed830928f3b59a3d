"""Redaction: what a report that is passed on leaves out."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from leaktight.core.record import Record, Status

WITHHELD = "withheld in a redacted report"
_PLACE = re.compile(r"^(?:~|/|\.{1,2}[/\\]|[A-Za-z]:[/\\]|\\\\).*[/\\](?=[^/\\])")


def redacted(records: Iterable[Record]) -> tuple[Record, ...]:
    """Return records without the values of single examples and without what a failure said.

    Values for each example go, and so does a reading about leakage that rests on one example alone: it is that example's
    value. An error's text may quote the data that caused it.

    Args:
        records: what was measured.
    """
    return tuple(_redacted(record) for record in records)


def _redacted(record: Record) -> Record:
    kept = tuple(r.model_copy(update={"each": ()}) for r in record.readings if r.leaks is None or r.n > 1)
    reason = WITHHELD if record.status is Status.FAILED else record.reason
    return record.model_copy(update={"readings": kept, "reason": reason})


def without_places(value: Any) -> Any:
    """Return settings with every path of a file shortened to the file's name: folders tell of people and projects.

    Example:
        >>> without_places({"path": "/home/anna/study/scans.npz", "format": "npz", "ratio": "1/2"})
        {'path': 'scans.npz', 'format': 'npz', 'ratio': '1/2'}
    """
    if isinstance(value, dict):
        return {name: without_places(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [without_places(inner) for inner in value]
    return _PLACE.sub("", value) if isinstance(value, str) else value
