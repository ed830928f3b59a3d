"""Redaction: what a report that is passed on leaves out."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from leaktight.core.record import Record, Status
from leaktight.core.value import Value
from leaktight.data.files import PASSED_ON

WITHHELD = "withheld in a redacted report"


def redacted(records: Iterable[Record]) -> tuple[Record, ...]:
    """Return records without the values of single examples and without what a failure said.

    Values for each example go, and so does a reading about leakage or against a party's examples that rests on one of them
    alone: it is that example's value. An error's text may quote the data that caused it.

    Args:
        records: what was measured.
    """
    return tuple(_redacted(record) for record in records)


def _redacted(record: Record) -> Record:
    shared = [r for r in record.readings if (r.leaks is None and r.against is None) or r.n > 1]
    kept = tuple(r.model_copy(update={"each": ()}) for r in shared)
    reason = WITHHELD if record.status is Status.FAILED else record.reason
    return record.model_copy(update={"readings": kept, "reason": reason})


def without_places(value: Value) -> dict[str, Any]:
    """Return settings as plain JSON types, without those that are places on the disk (`data.Location`).

    Example:
        >>> from leaktight.data import Npz
        >>> shown = without_places(Npz(path="patients/anna/scans.npz"))
        >>> shown["kind"], shown["path"]
        ('npz', 'withheld')
    """
    # Not `serialize_as_any`: that overrules how a field's own type is written.
    found: dict[str, Any] = json.loads(value.model_dump_json(context=PASSED_ON))
    return found
