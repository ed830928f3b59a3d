from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from leaktight.core.record import Cell, Status
from leaktight.core.threat import Knows, ThreatModel
from leaktight.running.audit_task import AuditTask, refusal, without_record
from leaktight.running.fingerprint import Fingerprint
from leaktight.running.training_cache import TrainingCache

Plans = Callable[..., Any]


@pytest.fixture
def cell(toy_plan: Plans) -> Cell:
    return toy_plan().cells()[0]


@pytest.fixture
def training_cache(tmp_path: Path) -> TrainingCache:
    return TrainingCache(tmp_path / "training")


def test_tasks_are_json_and_come_back_equal(cell: Cell, training_cache: TrainingCache) -> None:
    for work in (cell, training_cache.spec(cell)):
        task = AuditTask(work, Fingerprint({"models.py": "5a"}))
        assert json.loads(task.encode())
        again = AuditTask.from_bytes(task.encode())
        assert (again, again.name, again.fingerprint) == (task, task.name, task.fingerprint)
        assert AuditTask.from_bytes(AuditTask(work).encode()).fingerprint is None


def test_a_training_run_makes_the_file_that_its_cells_need(cell: Cell, training_cache: TrainingCache) -> None:
    spec = training_cache.spec(cell)
    training, measurement = AuditTask(spec), AuditTask(cell, training=spec)
    assert training.makes == measurement.needs == (spec.file_name,)
    assert training.needs == measurement.makes == ()


def test_tasks_say_what_they_are(cell: Cell, training_cache: TrainingCache) -> None:
    assert str(AuditTask(cell)) == f"{cell.label} against none, batch 1, initial"
    assert str(AuditTask(training_cache.spec(cell))) == "training with none"


def test_without_record_gives_cells_one_and_training_runs_none(cell: Cell, training_cache: TrainingCache) -> None:
    assert without_record(AuditTask(cell), Status.FAILED, "It died.").record.reason == "It died."
    assert without_record(AuditTask(training_cache.spec(cell)), Status.FAILED, "It died.").record is None


def test_what_the_threat_model_withholds_is_refused_without_a_training(toy_plan: Plans) -> None:
    cell = toy_plan(attacks={"toy": {"adapts": True}}).cells()[0]
    result = refusal(cell)
    assert result.record.status is Status.REFUSED
    assert result.record.reason.startswith("toy_attack needs to know defence, which the threat model withholds.")
    told = cell.probe.model_copy(update={"threat": ThreatModel(knows=frozenset({Knows.DEFENCE}))})
    assert refusal(cell.model_copy(update={"probe": told})) is None
