from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from leaktight.core.record import Cell
from leaktight.core.scenario import Training
from leaktight.running.measure import measure
from leaktight.running.training_cache import TrainingCache

Plans = Callable[..., Any]


def measuring(plan: Any) -> Cell:
    return next(cell for cell in plan.cells() if cell.purpose == "measure")


@pytest.fixture
def training_cache(tmp_path: Path) -> TrainingCache:
    return TrainingCache(tmp_path / "training")


def test_a_cell_gives_readings_utility_and_pictures(toy_plan: Plans, training_cache: TrainingCache) -> None:
    record, gallery = measure(measuring(toy_plan()), training_cache)
    assert record.reading("psnr", "raw").value > 80
    assert record.reading("accuracy").value == 0.75
    assert torch.equal(gallery["truth_raw"], gallery["guess"])


@pytest.mark.parametrize("noted", [0.5, 2.0])
def test_notes_are_the_trainings_and_the_observations_only_where_it_has_none(
    toy_plan: Plans, toys: ModuleType, training_cache: TrainingCache, noted: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    def train(scenario: Any, *_: object) -> Training:
        snapshots = {"initial": toys.Snapshot(scenario.task(0).public_parameters())}
        return Training(snapshots, notes={"epsilon": noted})

    monkeypatch.setattr(toys.ToyScenario, "train", train)
    record, _ = measure(measuring(toy_plan()), training_cache)
    assert record.notes == {"epsilon": noted, "rounds": 7.0}


def test_a_null_view_is_at_chance_where_the_plain_one_is_exact(toy_plan: Plans, training_cache: TrainingCache) -> None:
    [plain, null] = toy_plan(victims=40).cells()
    assert (plain.purpose, null.purpose) == ("measure", "null")
    exact, chance = measure(plain, training_cache)[0], measure(null, training_cache)[0]
    assert exact.reading("psnr", "raw").beats_chance()
    assert not chance.reading("psnr", "raw").beats_chance()


def test_same_cell_same_record_whatever_ran_before(toy_plan: Plans, toys: ModuleType, tmp_path: Path) -> None:
    plan = toy_plan(
        attacks={"a": {"blur": 0.1}, "b": {"blur": 0.2}}, defences=(toys.ToyNoise(),), stages=("initial", "end")
    )
    cells = plan.cells()
    forwards = {c.key: measure(c, TrainingCache(tmp_path / "one"))[0] for c in cells}
    shared = TrainingCache(tmp_path / "two")
    torch.manual_seed(99)
    backwards = {c.key: measure(c, shared)[0] for c in reversed(cells)}
    assert forwards == backwards
    blurred = [record.reading("mse", "raw").value for record in forwards.values()]
    assert len(set(blurred)) == len(cells)


def test_neither_a_label_nor_a_metric_nor_a_threat_model_changes_a_number(
    toy_plan: Plans, training_cache: TrainingCache
) -> None:
    from leaktight.core.threat import ThreatModel
    from leaktight.metrics import MSE

    [cell, null] = toy_plan(attacks={"a": {"blur": 0.1}}).cells()
    for one in (cell, null):
        before = measure(one, training_cache)[0].reading("mse", "raw")
        probe = one.probe.model_copy(update={"metrics": (MSE(),), "threat": ThreatModel(knows=frozenset())})
        other = one.model_copy(update={"label": "renamed", "probe": probe})
        assert other.key != one.key
        assert measure(other, training_cache)[0].reading("mse", "raw") == before


@pytest.mark.parametrize(
    "changes", [{"seed": 1}, {"stage": "end"}, {"batch_size": 2}, {"victims": 5}, {"blur": 0.11}, {"std": 0.2}]
)
def test_everything_else_draws_its_own_numbers(
    toy_plan: Plans,
    toys: ModuleType,
    training_cache: TrainingCache,
    changes: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    measure_module = sys.modules[measure.__module__]

    seeds = []
    monkeypatch.setattr(measure_module, "stream", lambda *names: seeds.append(names) or torch.Generator())
    cell = measuring(toy_plan(attacks={"a": {"blur": 0.1}}))
    other = cell.model_copy(update={name: value for name, value in changes.items() if name not in ("blur", "std")})
    if "blur" in changes:
        attack = toys.ToyAttack(blur=changes["blur"])
        other = cell.model_copy(update={"probe": cell.probe.model_copy(update={"attack": attack})})
    if "std" in changes:
        other = cell.model_copy(update={"defence": toys.ToyNoise(std=changes["std"])})
    measure(cell, training_cache)
    measure(other, training_cache)
    assert len(set(seeds)) == 2


def test_the_global_generator_is_left_alone(toy_plan: Plans, training_cache: TrainingCache) -> None:
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    measure(measuring(toy_plan(attacks={"a": {"blur": 0.1}})), training_cache)
    assert torch.equal(torch.rand(1), expected)
