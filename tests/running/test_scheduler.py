from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import pytest
import torch

import leaktight
from leaktight import plans, running
from leaktight.core.errors import InvalidValue, LeaktightError
from leaktight.core.record import Record, Status
from leaktight.findings.summary import summarise
from leaktight.plans.plan import on_device
from leaktight.running import audit_worker
from leaktight.running.audit_task import AuditResult, AuditTask, without_record
from leaktight.running.audit_worker import AuditWorker
from leaktight.running.forecast import Estimate
from leaktight.running.serial import Serial
from leaktight.running.store import STORE_FILE, TRAINING_FOLDER, Store
from leaktight.running.training_cache import TrainingSpec
from leaktight.running.worker_pool import PoolResult

Plans = Callable[..., Any]


def timeless(records: list[Record]) -> list[Record]:
    return [record.model_copy(update={"seconds": 0.0}) for record in records]


@pytest.fixture
def plan(toy_plan: Plans, toys: ModuleType, tmp_path: Path) -> Any:
    return toy_plan(
        scenario={"log": str(tmp_path / "trained")},
        attacks={"a": {"log": str(tmp_path / "attacked")}, "b": {"blur": 0.1, "log": str(tmp_path / "attacked")}},
        defences=(toys.ToyNoise(std=0.1), toys.ToyNoise(std=0.5)),
        stages=("initial", "end"),
    )


def lines(path: Path) -> int:
    return len(path.read_text().splitlines()) if path.exists() else 0


def test_every_cell_has_a_record_and_trainings_are_shared(plan: Any, tmp_path: Path) -> None:
    steps: list[running.Step] = []
    records = running.run(plan, tmp_path / "out", progress=lambda step: step.status and steps.append(step))
    assert [record.cell for record in records] == plan.cells()
    assert {record.status for record in records} == {Status.DONE}
    assert lines(tmp_path / "trained") == 3
    assert lines(tmp_path / "attacked") == len(records) == 14
    assert [step.done for step in steps] == list(range(1, 18))
    assert {(step.total, step.kept) for step in steps} == {(17, 0)}
    assert steps[0].text == "training with none"
    assert steps[-1].text.startswith("b against")


def test_a_second_run_computes_nothing(plan: Any, tmp_path: Path) -> None:
    first = running.run(plan, tmp_path / "out")
    steps: list[running.Step] = []
    assert running.run(plan, tmp_path / "out", progress=steps.append) == first
    assert steps == []
    assert lines(tmp_path / "attacked") == 14


def test_a_wider_plan_computes_only_what_is_new(plan: Any, toy_plan: Plans, tmp_path: Path) -> None:
    running.run(plan, tmp_path / "out")
    wider = plan.model_copy(update={"grid": plans.Grid(victims=4, stages=("initial", "end"), batch_sizes=(1, 2))})
    records = running.run(wider, tmp_path / "out")
    assert len(records) == 26
    assert lines(tmp_path / "attacked") == 26
    assert lines(tmp_path / "trained") == 3


# Without a defence there are one training run and six cells; two training runs and their cells come after these.
@pytest.mark.parametrize(("after", "cells"), [(0, 0), (1, 0), (3, 2), (9, 6), (12, 9)])
def test_an_interruption_keeps_what_is_finished(
    plan: Any, tmp_path: Path, interrupted: Any, after: int, cells: int
) -> None:
    out = tmp_path / "out"
    with pytest.raises(KeyboardInterrupt):
        running.run(plan, out, workers=interrupted(after))
    with Store.read(out) as store:
        assert len(store.records()) == cells
        assert store.missing() == 14 - cells
    steps: list[running.Step] = []
    resumed = running.run(plan, out, progress=steps.append)
    assert (steps[-1].done, steps[-1].kept) == (17 - after, cells)
    assert lines(tmp_path / "attacked") == 14
    assert lines(tmp_path / "trained") == 3
    assert timeless(resumed) == timeless(running.run(plan, tmp_path / "whole"))


def test_failed_cells_are_tried_again_and_refused_ones_are_not(toy_plan: Plans, tmp_path: Path) -> None:
    attacks = {name: {"trouble": name, "log": str(tmp_path / name)} for name in ("refuse", "numeric")}
    plan = toy_plan(attacks=attacks)
    first = running.run(plan, tmp_path / "out")
    assert [record.status for record in first] == [Status.REFUSED, Status.FAILED] * 2
    assert timeless(running.run(plan, tmp_path / "out")) == timeless(first)
    assert (lines(tmp_path / "refuse"), lines(tmp_path / "numeric")) == (2, 4)


@pytest.mark.parametrize(("trouble", "status"), [("refuse", Status.REFUSED), ("error", Status.FAILED)])
def test_a_training_that_cannot_be_done_gives_each_of_its_cells_the_reason(
    toy_plan: Plans, tmp_path: Path, trouble: str, status: Status
) -> None:
    plan = toy_plan(scenario={"trouble": trouble, "log": str(tmp_path / "log")}, stages=("initial", "end"))
    steps: list[running.Step] = []
    records = running.run(plan, tmp_path / "out", progress=steps.append)
    assert [record.status for record in records] == [status] * 3
    assert len({record.reason for record in records}) == 1
    assert records[0].reason.startswith("The toy")
    assert lines(tmp_path / "log") == 1
    assert (steps[-1].done, steps[-1].total) == (4, 4)


def test_the_bar_moves_while_a_training_lasts(toy_plan: Plans, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(audit_worker, "PACE", 0.0)
    steps: list[running.Step] = []
    running.run(toy_plan(scenario={"rounds": 4}), tmp_path / "out", progress=steps.append)
    assert [(step.done, step.total, step.status) for step in steps] == [
        (0, 3, None),
        (0.25, 3, None),
        (0.5, 3, None),
        (0.75, 3, None),
        (1.0, 3, None),
        (1, 3, Status.DONE),
        (1, 3, None),
        (2, 3, Status.DONE),
        (2, 3, None),
        (3, 3, Status.DONE),
    ]
    assert [step.text for step in steps[:3:2]] == ["training with none", "training with none, 2 of 4"]
    assert all((step.seconds is None) is (step.status is None) for step in steps)
    assert steps[-1].left == Estimate(0.0)


def test_the_undefended_answer_comes_before_anything_under_a_defence(
    toy_plan: Plans, toys: ModuleType, tmp_path: Path
) -> None:
    heard: list[Any] = []
    plan = toy_plan(defences=(toys.ToyNoise(std=0.1),))
    hooks: dict[str, Any] = {
        "progress": lambda step: step.status and heard.append(step.text),
        "on_begin": lambda sound: heard.append(sound),
        "on_undefended": lambda records: heard.append([record.cell.defence.kind for record in records]),
    }
    running.run(plan, tmp_path / "out", **hooks)
    assert heard[0] == plan
    answered = heard.index(["none"])
    assert not any("toy_noise" in text for text in heard[1:answered])
    assert sum("toy_noise" in text for text in heard[answered + 1 :]) == 2
    heard.clear()
    more = plan.model_copy(update={"defences": (toys.ToyNoise(std=0.1), toys.ToyNoise(std=0.5))})
    running.run(more, tmp_path / "out", **hooks)
    assert heard[:2] == [more, ["none"]]
    heard.clear()
    running.run(more, tmp_path / "out", **hooks)
    assert heard == [more]


def test_what_the_threat_model_forbids_is_refused_before_any_training(toy_plan: Plans, tmp_path: Path) -> None:
    plan = toy_plan(
        scenario={"log": str(tmp_path / "trained")}, attacks={"a": {"adapts": True}}, stages=("initial", "end")
    )
    with pytest.raises(InvalidValue, match="What the attacker `knows` contradicts the attacks: a needs defence"):
        running.run(plan, tmp_path / "out")
    assert lines(tmp_path / "trained") == 0


def test_cells_made_from_something_else_are_computed_again_and_it_is_said(
    plan: Any, tmp_path: Path, monkeypatch: Any, caplog: pytest.LogCaptureFixture
) -> None:
    out = tmp_path / "out"
    first, before = running.run(plan, out), leaktight.__version__
    assert caplog.text == ""
    monkeypatch.setattr(leaktight, "__version__", "99.0")
    steps: list[running.Step] = []
    again = running.run(plan, out, progress=steps.append)
    assert [record.message for record in caplog.records] == [
        f"The version of leaktight ({before}, now 99.0) changed, so 14 of 14 cells are computed again."
    ]
    assert timeless(again) == timeless(first)
    assert (steps[-1].done, steps[-1].kept) == (17, 0)
    assert (lines(tmp_path / "trained"), lines(tmp_path / "attacked")) == (6, 28)
    with Store.read(out) as store:
        assert store.versions()["leaktight"] == "99.0"
    caplog.clear()
    running.run(plan, out)
    assert caplog.text == ""
    assert lines(tmp_path / "attacked") == 28


def test_a_report_in_between_shows_nothing_that_was_made_from_something_else(
    plan: Any, tmp_path: Path, monkeypatch: Any, interrupted: Any
) -> None:
    out = tmp_path / "out"
    running.run(plan, out)
    monkeypatch.setattr(torch, "__version__", "99.0")
    with pytest.raises(KeyboardInterrupt):
        running.run(plan, out, workers=interrupted(5))
    with Store.read(out) as store:
        assert len(store.records()) == 4
        assert store.versions()["torch"] == "99.0"


def test_several_scenarios(toy_plan: Plans, toys: ModuleType, tmp_path: Path) -> None:
    scenarios = {"short": toys.ToyScenario(), "long": toys.ToyScenario(rounds=9)}
    plan = plans.Plan.model_validate({**dict(toy_plan(defences=(toys.ToyNoise(),))), "scenarios": scenarios})
    records = running.run(plan, tmp_path / "out")
    assert [record.cell for record in records] == plan.cells()
    assert [(row.scenario, row.among) for row in summarise(records).rows] == [(1, 2), (1, 2), (2, 2), (2, 2)]
    assert {record.status for record in records} == {Status.DONE}


def test_a_damaged_training_is_mended_on_the_way(plan: Any, tmp_path: Path) -> None:
    out = tmp_path / "out"
    whole = running.run(plan, out)
    (out / STORE_FILE).unlink()
    for path in (out / TRAINING_FOLDER).iterdir():
        path.write_bytes(path.read_bytes()[:50])
    assert timeless(running.run(plan, out)) == timeless(whole)
    assert lines(tmp_path / "trained") == 6


def test_one_worker_or_two_give_identical_records(toy_plan: Plans, toys: ModuleType, tmp_path: Path) -> None:
    attacks = {"a": {"blur": 0.1}, "refuses": {"trouble": "refuse"}, "is broken": {"trouble": "bug"}}
    plan = toy_plan(attacks=attacks, defences=(toys.ToyNoise(),), seeds=(0, 1), batch_sizes=(1, 3))
    one = running.run(plan, tmp_path / "one", workers=1)
    two = running.run(plan, tmp_path / "two", workers=2)
    assert timeless(one) == timeless(two)
    reasons = {record.reason.partition(" (")[0] for record in one if record.cell.label == "is broken"}
    assert reasons == {"TypeError: a fault of the program"}
    with Store.read(tmp_path / "one") as first, Store.read(tmp_path / "two") as second:
        for cell in plan.cells():
            pictures, others = first.gallery(cell.key), second.gallery(cell.key)
            assert pictures.keys() == others.keys()
            assert all(torch.equal(pictures[name], others[name]) for name in pictures)


def test_a_full_disk_stops_the_audit_and_the_next_run_goes_on(plan: Any, tmp_path: Path, monkeypatch: Any) -> None:
    begin = Store.begin

    def nearly_full(store: Store, plan: Any) -> None:
        begin(store, plan)
        [(pages,)] = store._connection.execute("PRAGMA page_count").fetchall()
        store._connection.execute(f"PRAGMA max_page_count = {pages + 8}")

    monkeypatch.setattr(Store, "begin", nearly_full)
    with pytest.raises(LeaktightError, match="The disk is full"):
        running.run(plan, tmp_path / "out")
    with Store.read(tmp_path / "out") as store:
        kept = store.records()
    assert 0 < len(kept) < 14
    monkeypatch.setattr(Store, "begin", begin)
    whole = running.run(plan, tmp_path / "out")
    assert [record for record in whole if record.cell in [one.cell for one in kept]] == kept
    assert lines(tmp_path / "attacked") == 15


def test_devices(toy_plan: Plans) -> None:
    plan = toy_plan()
    assert on_device(plan, None) == on_device(plan, "cpu") == plan
    assert on_device(toy_plan(scenario={"device": "auto"}), None).scenarios["1"].device != "auto"
    with pytest.raises(InvalidValue, match="There is no device named `gpu`"):
        on_device(plan, "gpu")
    if not torch.cuda.is_available():
        with pytest.raises(
            InvalidValue, match=r"The device `cuda` is not there: torch .* finds none. Use `auto` or `cpu`."
        ):
            on_device(plan, "cuda")


def test_workers_must_be_a_number_of_processes(plan: Any, tmp_path: Path) -> None:
    with pytest.raises(InvalidValue, match=r"The number of workers must be at least 1. Got 0 instead."):
        running.run(plan, tmp_path / "out", workers=0)
    assert not (tmp_path / "out").exists()


class Recorder(Serial[AuditTask, AuditResult]):
    """A pool that keeps what it was given, in order."""

    given: ClassVar[list[AuditTask]] = []

    def submit(self, task: AuditTask) -> None:
        self.given.append(task)
        super().submit(task)


def test_nothing_under_a_defence_begins_before_the_messages_without_one_are_under_way(
    plan: Any, tmp_path: Path
) -> None:
    running.run(plan, tmp_path / "out", workers=Recorder)
    bare = [task.work.defence.kind == "none" for task in Recorder.given]
    assert bare == sorted(bare, reverse=True)
    assert 0 < sum(bare) < len(bare) == 17


class Deadly(Serial[AuditTask, AuditResult]):
    """A pool whose workers die of every cell."""

    def next(self, advance: Callable[[AuditTask, int, int], None]) -> PoolResult[AuditTask, AuditResult]:
        result = super().next(advance)
        return (
            result if isinstance(result.task.work, TrainingSpec) else PoolResult(result.task, lost="All workers died.")
        )


def test_a_cell_whose_workers_die_is_failed_with_the_reason(plan: Any, tmp_path: Path) -> None:
    records = running.run(plan, tmp_path / "out", workers=Deadly)
    assert [record.cell for record in records] == plan.cells()
    assert {(record.status, record.reason) for record in records} == {(Status.FAILED, "All workers died.")}


def test_a_defence_is_measured_although_nothing_could_be_without_one(
    plan: Any, tmp_path: Path, monkeypatch: Any
) -> None:
    perform = AuditWorker.__call__

    def fail(worker: AuditWorker, task: AuditTask, progress: Any) -> AuditResult:
        if task.work.defence.kind == "none":
            return without_record(task, Status.FAILED, "no luck")
        return perform(worker, task, progress)

    monkeypatch.setattr(AuditWorker, "__call__", fail)
    records = running.run(plan, tmp_path / "out")
    found = {record.cell.defence.kind: record.status for record in records}
    assert found == {"none": Status.FAILED, "toy_noise": Status.DONE}
