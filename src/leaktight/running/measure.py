"""Measure one cell."""

from __future__ import annotations

from leaktight.core.random import Stream, stream
from leaktight.core.record import Cell, Record, Status
from leaktight.core.scenario import Observation
from leaktight.plans.control import nullify
from leaktight.running.gallery import Gallery, gallery_of
from leaktight.running.training_cache import TrainingCache


def measure(cell: Cell, training_cache: TrainingCache) -> tuple[Record, Gallery]:
    """Measure one cell; return its record and, for its owner's eyes, pictures.

    What parties noted counts their training run. What they noted while they were observed counts messages that only the
    audit asked for, so it is taken only where the training run noted nothing of that name.

    Args:
        cell: what to measure.
        training_cache: where the training run it needs is kept, or done.
    """
    training = training_cache.get(training_cache.spec(cell))
    observation = Observation(cell.stage, cell.batch_size, cell.victims, cell.seed)
    run = cell.scenario.observe(training, cell.defence, observation, cell.probe.enter)
    if cell.purpose == "null":
        run = nullify(run, _stream(cell, "null"))
    finding = cell.probe.read(run, _stream(cell, "probe"))
    record = Record(
        cell=cell,
        status=Status.DONE,
        reason=finding.remark,
        readings=(*finding.readings, *training.utility),
        notes={**run.notes, **training.notes},
        class_names=run.public.names,
    )
    return record, gallery_of(finding)


def _stream(cell: Cell, name: str) -> Stream:
    """Return a random stream that no order of cells, number of workers, label or metric changes."""
    place = (
        cell.scenario.key,
        cell.defence.key,
        cell.stage,
        cell.batch_size,
        cell.victims,
        cell.purpose,
        cell.probe.draws,
    )
    return stream(cell.seed, *place, name)
