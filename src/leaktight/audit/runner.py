"""The runner: one cell in, one record out, whatever happens."""

from __future__ import annotations

import time
from collections.abc import Mapping

from leaktight.audit.control import nulled
from leaktight.audit.gallery import Gallery, gallery_of
from leaktight.audit.trainings import Course, Trainings
from leaktight.core.errors import LeaktightError, Refusal
from leaktight.core.random import stream
from leaktight.core.record import Cell, Record, Status
from leaktight.core.scenario import Observation

FAILURES = (LeaktightError, RuntimeError, ArithmeticError, ValueError, MemoryError, OSError)
"""What a cell may die of without taking the audit with it; anything else is a fault of the program and must be seen."""


def run_cell(cell: Cell, trainings: Trainings) -> tuple[Record, Gallery]:
    """Measure one cell; return its record and, for its owner's eyes, pictures.

    The random stream derives from the cell's seed and key alone, so neither order nor number of workers changes a record.

    Args:
        cell: what to measure.
        trainings: where the training it needs is kept, or done.
    """
    started = time.monotonic()
    try:
        record, gallery = _measured(cell, trainings)
    except FAILURES as error:
        record, gallery = unmeasured(cell, *verdict(error)), {}
    return record.model_copy(update={"seconds": time.monotonic() - started}), gallery


def verdict(error: BaseException) -> tuple[Status, str]:
    """Return what an error makes of a cell, and the reason in one sentence."""
    if isinstance(error, Refusal):
        return Status.REFUSED, str(error)
    if isinstance(error, LeaktightError):
        return Status.FAILED, str(error)
    if isinstance(error, MemoryError):
        return Status.FAILED, "The memory did not suffice. Use fewer victims, smaller batches or fewer workers."
    lines = str(error).strip().splitlines() or ["no reason was given"]
    return Status.FAILED, f"{type(error).__name__}: {lines[0].rstrip('.')}."


def unmeasured(cell: Cell, status: Status, reason: str) -> Record:
    """Return the record of a cell that gave no readings."""
    return Record(cell=cell, status=status, reason=reason)


def _measured(cell: Cell, trainings: Trainings) -> tuple[Record, Gallery]:
    training = trainings.get(Course.of(cell))
    observation = Observation(cell.stage, cell.batch_size, cell.victims, cell.seed)
    run = cell.scenario.observe(training, cell.defence, observation, cell.probe.enter)
    if cell.purpose == "null":
        run = nulled(run, stream(cell.seed, cell.key, "null"))
    finding = cell.probe.read(run, stream(cell.seed, cell.key, "probe"))
    record = Record(
        cell=cell,
        status=Status.DONE,
        readings=(*finding.readings, *training.utility),
        notes=_largest(training.notes, run.notes),
    )
    return record, gallery_of(finding)


def _largest(*notes: Mapping[str, float]) -> dict[str, float]:
    """Merge notes; of two that speak of the same thing, the larger one is the more cautious."""
    found: dict[str, float] = {}
    for one in notes:
        for name, value in one.items():
            found[name] = max(value, found.get(name, value))
    return found
