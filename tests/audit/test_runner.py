from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from leaktight.audit.runner import run_cell, verdict
from leaktight.audit.trainings import Trainings
from leaktight.core.errors import LeaktightError, Refusal
from leaktight.core.record import Cell, Status

Plans = Callable[..., Any]


def measure(plan: Any) -> Cell:
    return next(cell for cell in plan.cells() if cell.purpose == "measure")


@pytest.fixture
def trainings(tmp_path: Path) -> Trainings:
    return Trainings(tmp_path / "training")


def test_a_cell_gives_readings_utility_notes_and_pictures(toy_plan: Plans, trainings: Trainings) -> None:
    record, gallery = run_cell(measure(toy_plan()), trainings)
    assert record.status is Status.DONE
    assert record.reading("psnr", "raw").value > 80
    assert record.reading("accuracy").value == 0.75
    assert record.notes == {"epsilon": 2.0, "rounds": 7.0}
    assert record.seconds > 0
    assert torch.equal(gallery["truth_raw"], gallery["guess"])


def test_a_null_view_is_at_chance_where_the_plain_one_is_exact(toy_plan: Plans, trainings: Trainings) -> None:
    [plain, null] = toy_plan(victims=40).cells()
    assert (plain.purpose, null.purpose) == ("measure", "null")
    exact, chance = run_cell(plain, trainings)[0], run_cell(null, trainings)[0]
    assert exact.reading("psnr", "raw").beats_chance()
    assert not chance.reading("psnr", "raw").beats_chance()


def test_same_cell_same_record_whatever_ran_before(toy_plan: Plans, toys: ModuleType, tmp_path: Path) -> None:
    plan = toy_plan(attacks={"a": {"blur": 0.1}, "b": {"blur": 0.2}}, defences=(toys.ToyNoise(),), stages=("initial", "end"))
    cells = plan.cells()
    forwards = {c.key: run_cell(c, Trainings(tmp_path / "one"))[0] for c in cells}
    shared = Trainings(tmp_path / "two")
    torch.manual_seed(99)
    backwards = {c.key: run_cell(c, shared)[0] for c in reversed(cells)}
    for key, record in forwards.items():
        assert record.model_copy(update={"seconds": 0.0}) == backwards[key].model_copy(update={"seconds": 0.0})
    blurred = [record.reading("mse", "raw").value for record in forwards.values()]
    assert len(set(blurred)) == len(cells)


def test_the_global_generator_is_left_alone(toy_plan: Plans, trainings: Trainings) -> None:
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    run_cell(measure(toy_plan(attacks={"a": {"blur": 0.1}})), trainings)
    assert torch.equal(torch.rand(1), expected)


@pytest.mark.parametrize("where", ["scenario", "attack"])
@pytest.mark.parametrize(
    ("trouble", "status", "reason"),
    [
        ("refuse", Status.REFUSED, "The toy refuses. Ask something else."),
        ("error", Status.FAILED, "The toy is broken. Mend it."),
        ("numeric", Status.FAILED, "RuntimeError: svd did not converge."),
        ("memory", Status.FAILED, "The memory did not suffice. Use fewer victims, smaller batches or fewer workers."),
    ],
)
def test_trouble_becomes_a_record(
    toy_plan: Plans, trainings: Trainings, where: str, trouble: str, status: Status, reason: str
) -> None:
    settings = {"trouble": trouble}
    plan = toy_plan(scenario=settings) if where == "scenario" else toy_plan(attacks={"toy": settings})
    record, gallery = run_cell(measure(plan), trainings)
    assert (record.status, record.reason) == (status, reason)
    assert record.readings == ()
    assert gallery == {}


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_an_interruption_is_no_record(
    toy_plan: Plans, trainings: Trainings, kind: type[BaseException], monkeypatch: pytest.MonkeyPatch, toys: ModuleType
) -> None:
    def interrupted(*_: object) -> None:
        raise kind

    monkeypatch.setattr(toys, "happen", interrupted)
    with pytest.raises(kind):
        run_cell(measure(toy_plan()), trainings)


def test_a_fault_of_the_program_is_seen(toy_plan: Plans, trainings: Trainings) -> None:
    with pytest.raises(TypeError, match="a fault of the program"):
        run_cell(measure(toy_plan(attacks={"toy": {"trouble": "bug"}})), trainings)


def test_every_verdict_has_a_reason() -> None:
    assert verdict(RuntimeError()) == (Status.FAILED, "RuntimeError: no reason was given.")
    assert verdict(Refusal("No.")) == (Status.REFUSED, "No.")
    assert verdict(LeaktightError("Broken.")) == (Status.FAILED, "Broken.")
