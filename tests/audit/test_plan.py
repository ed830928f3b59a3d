from __future__ import annotations

import itertools
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from leaktight.audit.plan import Grid, Plan
from leaktight.core.defence import Undefended
from leaktight.core.errors import InvalidValue

Plans = Callable[..., Any]


def test_the_grid_is_the_product_of_everything(toy_plan: Plans, toys: ModuleType) -> None:
    plan = toy_plan(
        attacks={"a": {}, "b": {"blur": 0.1}},
        defences=(toys.ToyNoise(std=0.1), toys.ToyNoise(std=0.2)),
        batch_sizes=(1, 4),
        stages=("initial", "end"),
        seeds=(0, 5),
        victims=3,
    )
    measured = [cell for cell in plan.cells() if cell.purpose == "measure"]
    found = {(c.seed, str(c.defence), c.stage, c.batch_size, c.label) for c in measured}
    defences = ["none", "toy_noise", "toy_noise(std=0.2)"]
    assert found == set(itertools.product((0, 5), defences, ("initial", "end"), (1, 4), ("a", "b")))
    assert len(measured) == len(found) == 48
    assert {cell.victims for cell in plan.cells()} == {3}
    assert len({cell.key for cell in plan.cells()}) == len(plan.cells())


def test_none_is_always_there_once_and_twins_are_one(toy_plan: Plans, toys: ModuleType) -> None:
    plan = toy_plan(defences=(Undefended(), toys.ToyNoise(), Undefended(), toys.ToyNoise()))
    assert plan.defences == (toys.ToyNoise(),)
    assert [str(c.defence) for c in plan.cells() if c.purpose == "measure"] == ["none", "toy_noise"]


def test_a_plan_goes_to_json_and_back(toy_plan: Plans, toys: ModuleType) -> None:
    plan = toy_plan(defences=(toys.ToyNoise(std=0.2),), batch_sizes=(2, 1), attacks={"z": {}, "a": {"blur": 0.5}})
    back = Plan.model_validate(plan.to_dict())
    assert back == plan
    assert [cell.key for cell in back.cells()] == [cell.key for cell in plan.cells()]
    assert list(back.probes) == ["z", "a"]


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"victims": 0}, "The `victims` of Grid must be at least 1. Got 0 instead."),
        ({"victims": 10**6}, "The `victims` of Grid must be at most 100000."),
        ({"batch_sizes": (4, -1)}, "The `batch_sizes` of Grid must be whole numbers of at least 1. Got -1 instead."),
        ({"batch_sizes": ()}, "The `batch_sizes` of Grid must be a list of at least 1."),
        ({"batch_sizes": (1, 4, 1)}, "The `batch_sizes` of Grid must hold each value once. Got 1 2 times instead."),
        ({"stages": ("late",)}, "The `stages.0` of Grid must be one of 'initial', 'early' or 'end'. Got 'late' instead."),
        ({"seeds": (-3,)}, "The `seeds` of Grid must be whole numbers of at least 0. Got -3 instead."),
        ({"batchsizes": (1,)}, "Grid has no setting `batchsizes`. Did you mean `batch_sizes`?"),
    ],
)
def test_absurd_grids_are_refused(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        Grid(**settings)
    assert sentence in str(caught.value)


def test_a_plan_without_probes_is_refused(toys: ModuleType) -> None:
    with pytest.raises(InvalidValue, match="The `probes` of Plan must be"):
        Plan(scenario=toys.ToyScenario(), probes={})


def test_replacing_settings_of_the_scenario(toy_plan: Plans) -> None:
    plan = toy_plan()
    assert plan.with_scenario(device="cuda").scenario.device == "cuda"
    assert plan.scenario.device == "cpu"
    with pytest.raises(InvalidValue, match="The scenario toy_scenario has no setting `model`"):
        plan.with_scenario(model=1)
    with pytest.raises(InvalidValue, match="The `device` of toy_scenario must be one of"):
        plan.with_scenario(device="abacus")
    assert plan.with_seed(9).grid.seeds == (9,)
    with pytest.raises(InvalidValue, match="at least 0"):
        plan.with_seed(-1)
