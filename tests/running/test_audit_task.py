from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from leaktight.core.errors import LeaktightError, Refusal
from leaktight.core.record import Cell, Status
from leaktight.core.threat import Knows, ThreatModel
from leaktight.running import audit_task, gallery
from leaktight.running.audit_task import AuditTask, TaskOutcome, answer, perform, refused, verdict, without_record
from leaktight.running.training_cache import TrainingCache

Plans = Callable[..., Any]


@pytest.fixture
def cell(toy_plan: Plans) -> Cell:
    return toy_plan().cells()[0]


@pytest.fixture
def trainings(tmp_path: Path) -> TrainingCache:
    return TrainingCache(tmp_path / "training")


def line_of(text: str) -> int:
    lines = (Path(__file__).parents[1] / "toys" / "leaktight_toys.py").read_text().splitlines()
    return next(number for number, line in enumerate(lines, start=1) if text in line)


def test_jobs_are_json_and_come_back_equal(cell: Cell, trainings: TrainingCache) -> None:
    for one in (AuditTask(cell), AuditTask(trainings.course(cell))):
        assert json.loads(one.encode())
        assert AuditTask.decode(one.encode()) == one
        assert AuditTask.decode(one.encode()).key == one.key


def test_a_measurement_over_bytes_equals_one_in_this_process(cell: Cell, tmp_path: Path) -> None:
    here = perform(AuditTask(cell), TrainingCache(tmp_path / "a"))
    content, pictures = answer(AuditTask(cell).encode(), TrainingCache(tmp_path / "b"))
    there = TaskOutcome.decode(AuditTask(cell), content, pictures)
    assert here.record
    assert there.record
    assert there.record.seconds > 0
    assert there.record.model_copy(update={"seconds": 0.0}) == here.record.model_copy(update={"seconds": 0.0})
    shown = gallery.decode(there.pictures)
    assert torch.equal(shown["guess"], shown["truth_raw"])


def test_a_training_leaves_a_file_and_no_record(cell: Cell, trainings: TrainingCache) -> None:
    training = AuditTask(trainings.course(cell))
    outcome = TaskOutcome.decode(training, *answer(training.encode(), trainings))
    assert (outcome.status, outcome.record) == (Status.DONE, None)
    assert trainings.has(trainings.course(cell))


def test_a_training_says_how_far_it_is_but_not_too_often(toy_plan: Plans, tmp_path: Path, monkeypatch: Any) -> None:
    for pace, expected in ((0.0, [(1, 3), (2, 3), (3, 3)]), (1000.0, [(1, 3)])):
        monkeypatch.setattr(audit_task, "PACE", pace)
        trainings = TrainingCache(tmp_path / str(pace))
        course = trainings.course(toy_plan(scenario={"rounds": 3}).cells()[0])
        heard: list[tuple[int, int]] = []
        perform(AuditTask(course), trainings, lambda done, total, heard=heard: heard.append((done, total)))
        assert heard == expected


TROUBLES = {
    "refuse": (Status.REFUSED, "The toy refuses. Ask something else."),
    "error": (Status.FAILED, "The toy is broken. Mend it."),
    "numeric": (Status.FAILED, f"RuntimeError: svd did not converge (leaktight_toys.py:{line_of('raise RuntimeError')})."),
    "bug": (Status.FAILED, f"TypeError: a fault of the program (leaktight_toys.py:{line_of('raise TypeError')})."),
    "memory": (Status.FAILED, "The memory did not suffice. Use fewer victims, smaller batches or fewer workers."),
}


@pytest.mark.parametrize("where", ["scenario", "attack"])
@pytest.mark.parametrize("trouble", TROUBLES)
def test_any_trouble_becomes_an_outcome(toy_plan: Plans, trainings: TrainingCache, where: str, trouble: str) -> None:
    settings = {"trouble": trouble}
    cell = (toy_plan(scenario=settings) if where == "scenario" else toy_plan(attacks={"toy": settings})).cells()[0]
    outcome = perform(AuditTask(cell), trainings)
    assert (outcome.record.status, outcome.record.reason) == TROUBLES[trouble]
    assert (outcome.status, outcome.reason) == TROUBLES[trouble]
    assert outcome.record.readings == ()
    assert outcome.record.seconds > 0
    assert outcome.pictures == b""
    if where == "scenario":
        training = perform(AuditTask(trainings.course(cell)), trainings)
        assert (training.status, training.reason) == TROUBLES[trouble]


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_an_interruption_is_no_outcome(
    cell: Cell, trainings: TrainingCache, kind: type[BaseException], monkeypatch: pytest.MonkeyPatch, toys: ModuleType
) -> None:
    def interrupted(*_: object) -> None:
        raise kind

    monkeypatch.setattr(toys, "happen", interrupted)
    with pytest.raises(kind):
        perform(AuditTask(cell), trainings)


def test_every_verdict_has_a_reason() -> None:
    assert verdict(RuntimeError()) == (Status.FAILED, "RuntimeError.")
    assert verdict(KeyError("weight")) == (Status.FAILED, "KeyError: 'weight'.")
    assert verdict(Refusal("No.")) == (Status.REFUSED, "No.")
    assert verdict(LeaktightError("Broken.")) == (Status.FAILED, "Broken.")


def test_a_job_that_a_worker_cannot_read_is_failed_with_a_record(cell: Cell, trainings: TrainingCache) -> None:
    spec = json.loads(AuditTask(cell).encode())
    spec["measure"]["defence"]["kind"] = "unheard_of"
    outcome = TaskOutcome.decode(AuditTask(cell), *answer(json.dumps(spec).encode(), trainings))
    assert outcome.status is Status.FAILED
    assert outcome.record is not None
    assert outcome.record.cell == cell
    assert "There is no defence named `unheard_of`." in outcome.record.reason


def test_without_record_gives_cells_one_and_trainings_none(cell: Cell, trainings: TrainingCache) -> None:
    assert without_record(AuditTask(cell), Status.FAILED, "It died.").record.reason == "It died."
    assert without_record(AuditTask(trainings.course(cell)), Status.FAILED, "It died.").record is None


def test_what_the_threat_model_withholds_is_refused_without_a_training(toy_plan: Plans) -> None:
    cell = toy_plan(attacks={"toy": {"adapts": True}}).cells()[0]
    outcome = refused(cell)
    assert outcome.record.status is Status.REFUSED
    assert outcome.record.reason.startswith("toy_attack needs to know defence, which the threat model withholds.")
    told = cell.probe.model_copy(update={"threat": ThreatModel(knows=frozenset({Knows.DEFENCE}))})
    assert refused(cell.model_copy(update={"probe": told})) is None
