"""Redaction: what a report that is passed on leaves out."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from leaktight.core.record import Record, Status
from leaktight.core.value import Value
from leaktight.data.files import PASSED_ON
from leaktight.plans.plan import Grid, Plan

WITHHELD = "withheld in a redacted report"


def redact_records(
    records: Iterable[Record], numbers: Mapping[int, int] | None = None, pairs: bool = False
) -> tuple[Record, ...]:
    """Return records without the values of single examples, without seeds, and without what a failure said.

    Values for each example go, and so does a reading about leakage or against a party's examples that rests on one of
    them
    alone: it is that example's value. An error's text may quote the data that caused it. All noise of an audit, and the
    choice of its examples, can be drawn again from a seed; so each has a number instead, also in the keys of cells,
    which are hashes of it. Classes may be people, so that their names go too.

    Args:
        records: what was measured.
        numbers: the number of each seed; by default in the order of the records.
        pairs: whether what became of each test row stays, for a page that shows nothing of it but prices.
    """
    records = tuple(records)
    known = number_seeds(record.cell.seed for record in records) if numbers is None else numbers
    shown = records if pairs else without_outcomes(records)
    return tuple(_redact(record, known[record.cell.seed]) for record in shown)


def without_outcomes(records: Iterable[Record]) -> tuple[Record, ...]:
    """Return records without what became of each test row.

    Test rows are somebody's too, and nobody but the audit's owner needs them.
    """
    return tuple(
        record.model_copy(update={"readings": tuple(reading.without_outcomes() for reading in record.readings)})
        for record in records
    )


def number_seeds(seeds: Iterable[int]) -> dict[int, int]:
    """Return a number from 1 for each seed, in their order.

    Example:
        >>> number_seeds([7, 3, 7])
        {7: 1, 3: 2}
    """
    return {seed: number for number, seed in enumerate(dict.fromkeys(seeds), start=1)}


def without_seeds(plan: Plan, numbers: Mapping[int, int]) -> Plan:
    """Return a plan that has the number of each seed in place of it."""
    seeds = tuple(numbers[seed] for seed in plan.grid.seeds)
    return plan.model_copy(update={"grid": Grid.model_validate({**dict(plan.grid), "seeds": seeds})})


def _redact(record: Record, number: int) -> Record:
    shared = [r for r in record.readings if (r.leaks is None and r.against is None) or r.n > 1]
    kept = tuple(r.model_copy(update={"each": ()}) for r in shared)
    reason = WITHHELD if record.status is Status.FAILED else record.reason
    cell = record.cell.model_copy(update={"seed": number})
    return record.model_copy(update={"cell": cell, "readings": kept, "reason": reason, "class_names": ()})


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
