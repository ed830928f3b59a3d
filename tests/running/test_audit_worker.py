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
from leaktight.running import audit_worker, gallery
from leaktight.running.audit_task import AuditTask
from leaktight.running.audit_worker import ELSEWHERE, AuditWorker, classify_error
from leaktight.running.fingerprint import Fingerprint
from leaktight.running.training_cache import TrainingCache

Plans = Callable[..., Any]


@pytest.fixture
def cell(toy_plan: Plans) -> Cell:
    return toy_plan().cells()[0]


@pytest.fixture
def training_cache(tmp_path: Path) -> TrainingCache:
    return TrainingCache(tmp_path / "training")


def line_of(text: str) -> int:
    lines = (Path(__file__).parents[1] / "toys" / "leaktight_toys.py").read_text().splitlines()
    return next(number for number, line in enumerate(lines, start=1) if text in line)


def test_a_measurement_over_bytes_equals_one_in_this_process(cell: Cell, tmp_path: Path) -> None:
    here = AuditWorker(TrainingCache(tmp_path / "a"))(AuditTask(cell))
    there = AuditTask(cell).decode(AuditWorker(TrainingCache(tmp_path / "b")).answer(AuditTask(cell).encode()))
    assert here.record
    assert there.record
    assert there.record.seconds > 0
    assert there.record.model_copy(update={"seconds": 0.0}) == here.record.model_copy(update={"seconds": 0.0})
    shown = gallery.decode(there.pictures)
    assert torch.equal(shown["guess"], shown["truth_raw"])


def test_a_training_leaves_a_file_and_no_record(cell: Cell, training_cache: TrainingCache) -> None:
    training = AuditTask(training_cache.spec(cell))
    result = training.decode(AuditWorker(training_cache).answer(training.encode()))
    assert (result.status, result.record) == (Status.DONE, None)
    assert training_cache.has(training_cache.spec(cell))


def test_a_training_says_how_far_it_is_but_not_too_often(toy_plan: Plans, tmp_path: Path, monkeypatch: Any) -> None:
    for pace, expected in ((0.0, [(0, 0), (1, 3), (2, 3), (3, 3)]), (1000.0, [(0, 0), (1, 3)])):
        monkeypatch.setattr(audit_worker, "PACE", pace)
        training_cache = TrainingCache(tmp_path / str(pace))
        spec = training_cache.spec(toy_plan(scenario={"rounds": 3}).cells()[0])
        heard: list[tuple[int, int]] = []
        AuditWorker(training_cache)(AuditTask(spec), lambda done, total, heard=heard: heard.append((done, total)))
        assert heard == expected


TROUBLES = {
    "refuse": (Status.REFUSED, "The toy refuses. Ask something else."),
    "error": (Status.FAILED, "The toy is broken. Mend it."),
    "numeric": (
        Status.FAILED,
        f"RuntimeError: svd did not converge (leaktight_toys.py:{line_of('raise RuntimeError')}).",
    ),
    "bug": (Status.FAILED, f"TypeError: a fault of the program (leaktight_toys.py:{line_of('raise TypeError')})."),
    "memory": (Status.FAILED, "The memory did not suffice. Use fewer victims, smaller batches or fewer workers."),
}


@pytest.mark.parametrize("where", ["scenario", "attack"])
@pytest.mark.parametrize("trouble", TROUBLES)
def test_any_trouble_becomes_a_result(toy_plan: Plans, training_cache: TrainingCache, where: str, trouble: str) -> None:
    settings = {"trouble": trouble}
    cell = (toy_plan(scenario=settings) if where == "scenario" else toy_plan(attacks={"toy": settings})).cells()[0]
    result = AuditWorker(training_cache)(AuditTask(cell))
    assert (result.record.status, result.record.reason) == TROUBLES[trouble]
    assert (result.status, result.reason) == TROUBLES[trouble]
    assert result.record.readings == ()
    assert result.record.seconds > 0
    assert result.pictures == b""
    if where == "scenario":
        training = AuditWorker(training_cache)(AuditTask(training_cache.spec(cell)))
        assert (training.status, training.reason) == TROUBLES[trouble]


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_an_interruption_is_no_result(
    cell: Cell,
    training_cache: TrainingCache,
    kind: type[BaseException],
    monkeypatch: pytest.MonkeyPatch,
    toys: ModuleType,
) -> None:
    def interrupted(*_: object) -> None:
        raise kind

    monkeypatch.setattr(toys, "happen", interrupted)
    with pytest.raises(kind):
        AuditWorker(training_cache)(AuditTask(cell))


def test_every_error_has_a_reason() -> None:
    assert classify_error(RuntimeError()) == (Status.FAILED, "RuntimeError.")
    assert classify_error(KeyError("weight")) == (Status.FAILED, "KeyError: 'weight'.")
    assert classify_error(Refusal("No.")) == (Status.REFUSED, "No.")
    assert classify_error(LeaktightError("Broken.")) == (Status.FAILED, "Broken.")


def test_a_task_that_a_worker_cannot_read_is_failed_with_a_record(cell: Cell, training_cache: TrainingCache) -> None:
    spec = json.loads(AuditTask(cell).encode())
    spec["measure"]["defence"]["kind"] = "unheard_of"
    result = AuditTask(cell).decode(AuditWorker(training_cache).answer(json.dumps(spec).encode()))
    assert result.status is Status.FAILED
    assert result.record is not None
    assert result.record.cell == cell
    assert "There is no defence named `unheard_of`." in result.record.reason


def test_a_worker_with_other_data_or_code_says_so_where_it_was_sent_the_task(
    cell: Cell, training_cache: TrainingCache
) -> None:
    task = AuditTask(cell, Fingerprint({**training_cache.fingerprint(cell).parts, "the data": "others"}))
    result = task.decode(AuditWorker(training_cache).answer(task.encode()))
    assert (result.status, result.reason) == (Status.FAILED, ELSEWHERE.format(what="the data"))
    assert AuditWorker(training_cache)(task).status is Status.DONE
    same = AuditTask(cell, training_cache.fingerprint(cell))
    assert same.decode(AuditWorker(training_cache).answer(same.encode())).status is Status.DONE
