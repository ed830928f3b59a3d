from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from leaktight.audit import gallery
from leaktight.audit.job import Job, Outcome, answer, perform, without_record
from leaktight.audit.trainings import Course, Trainings
from leaktight.core.record import Cell, Status

Plans = Callable[..., Any]


@pytest.fixture
def cell(toy_plan: Plans) -> Cell:
    return toy_plan().cells()[0]


def test_jobs_are_json_and_come_back_equal(cell: Cell) -> None:
    for job in (Job(cell), Job(Course.of(cell))):
        assert json.loads(job.encode())
        assert Job.decode(job.encode()) == job
        assert Job.decode(job.encode()).key == job.key


def test_a_measurement_over_bytes_equals_one_in_this_process(cell: Cell, tmp_path: Path) -> None:
    here = perform(Job(cell), Trainings(tmp_path / "a"))
    content, pictures = answer(Job(cell).encode(), Trainings(tmp_path / "b"))
    there = Outcome.decode(Job(cell), content, pictures)
    assert here.record
    assert there.record
    assert there.record.model_copy(update={"seconds": 0.0}) == here.record.model_copy(update={"seconds": 0.0})
    shown = gallery.decode(there.pictures)
    assert torch.equal(shown["guess"], shown["truth_raw"])


def test_a_training_leaves_a_file_and_no_record(cell: Cell, tmp_path: Path) -> None:
    trainings = Trainings(tmp_path)
    job = Job(Course.of(cell))
    outcome = Outcome.decode(job, *answer(job.encode(), trainings))
    assert (outcome.status, outcome.record) == (Status.DONE, None)
    assert trainings.has(Course.of(cell))


def test_a_training_that_cannot_be_done_says_why(toy_plan: Plans, tmp_path: Path) -> None:
    job = Job(Course.of(toy_plan(scenario={"trouble": "refuse"}).cells()[0]))
    outcome = Outcome.decode(job, *answer(job.encode(), Trainings(tmp_path)))
    assert (outcome.status, outcome.reason) == (Status.REFUSED, "The toy refuses. Ask something else.")


def test_a_job_that_a_worker_cannot_read_is_failed_with_a_record(cell: Cell, tmp_path: Path, toys: ModuleType) -> None:
    spec = json.loads(Job(cell).encode())
    spec["measure"]["defence"]["kind"] = "unheard_of"
    outcome = Outcome.decode(Job(cell), *answer(json.dumps(spec).encode(), Trainings(tmp_path)))
    assert outcome.status is Status.FAILED
    assert outcome.record is not None
    assert outcome.record.cell == cell
    assert "There is no defence named `unheard_of`." in outcome.record.reason


def test_without_record_gives_cells_one_and_trainings_none(cell: Cell) -> None:
    assert without_record(Job(cell), Status.FAILED, "It died.").record.reason == "It died."
    assert without_record(Job(Course.of(cell)), Status.FAILED, "It died.").record is None
