from __future__ import annotations

import itertools
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from leaktight.core.defence import Undefended
from leaktight.core.errors import InvalidValue
from leaktight.data import Digits
from leaktight.learning.federated import Federated
from leaktight.models import MLP
from leaktight.plans import quick
from leaktight.plans.plan import Grid, Plan
from leaktight.plans.plan_file import parse_plan

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


def test_scenarios_come_one_after_the_other_and_share_their_controls(toy_plan: Plans, toys: ModuleType) -> None:
    scenarios = {"a": Federated(data=Digits(), model=MLP()), "b": Federated(data=Digits(), model=MLP(), rounds=5)}
    plan = Plan.model_validate({**dict(toy_plan(seeds=(0, 1), defences=(toys.ToyNoise(),))), "scenarios": scenarios})
    cells = plan.cells()
    assert [(c.purpose, c.scenario.rounds) for c in cells] == [
        *[("measure", 100)] * 4,
        *[("measure", 5)] * 4,
        *[("control", 0)] * 2,
        *[("null", 100)] * 2,
        *[("null", 5)] * 2,
    ]
    assert len({cell.key for cell in cells}) == len(cells)


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
        ({"victims": 10**400}, "The `victims` of Grid must be at most 100000."),
        ({"victims": 2.5}, "The `victims` of Grid must be a whole number or `all`. Got 2.5 instead."),
        ({"victims": float("inf")}, "The `victims` of Grid must be a whole number or `all`. Got inf instead."),
        ({"victims": float("-inf")}, "The `victims` of Grid must be a whole number or `all`. Got -inf instead."),
        ({"victims": float("nan")}, "The `victims` of Grid must be a whole number or `all`. Got nan instead."),
        ({"batch_sizes": (4, -1)}, "The `batch_sizes` of Grid must be whole numbers of at least 1. Got -1 instead."),
        ({"batch_sizes": ()}, "The `batch_sizes` of Grid must be a list of at least 1."),
        ({"batch_sizes": (1, 4, 1)}, "The `batch_sizes` of Grid must hold each value once. Got 1 2 times instead."),
        (
            {"stages": ("late",)},
            "The `stages.0` of Grid must be one of 'initial', 'early', 'end' or 'training'. Got 'late' instead.",
        ),
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
        Plan(scenarios={"1": toys.ToyScenario()}, probes={})


def test_replacing_settings_of_every_scenario(toy_plan: Plans, toys: ModuleType) -> None:
    plan = toy_plan()
    assert plan.with_scenarios(device="cuda").scenarios["1"].device == "cuda"
    assert plan.scenarios["1"].device == "cpu"
    with pytest.raises(InvalidValue, match="The scenario toy_scenario has no setting `model`"):
        plan.with_scenarios(model=1)
    with pytest.raises(InvalidValue, match="The `device` of toy_scenario must be one of"):
        plan.with_scenarios(device="abacus")
    two = Plan.model_validate({**dict(plan), "scenarios": {"1": toys.ToyScenario(), "2": toys.ToyScenario(rounds=5)}})
    assert [scenario.pause for scenario in two.with_scenarios(pause=0.5).scenarios.values()] == [0.5, 0.5]
    with pytest.raises(InvalidValue, match="The `scenarios` of Plan must differ from each other"):
        two.with_scenarios(rounds=3)
    assert plan.with_seed(9).grid.seeds == (9,)
    with pytest.raises(InvalidValue, match="at least 0"):
        plan.with_seed(-1)


def test_a_plan_may_leave_out_what_another_has_measured_without_defence() -> None:
    plan = quick()
    less = plan.model_copy(update={"bare": False})
    assert plan.bare
    assert "bare" not in plan.to_dict()
    assert Plan.model_validate(less.to_dict()) == less
    measured = [cell for cell in less.cells() if cell.purpose == "measure"]
    assert {cell.defence for cell in measured} == set(plan.defences)
    assert {cell.purpose for cell in less.cells()} == {"measure", "control"}


def test_every_message_of_a_split_training_can_be_asked_for() -> None:
    split = {"kind": "split", "data": "rare_digit", "model": "mlp", "passes": 2, "batch_size": 128}
    document: dict[str, Any] = {
        "scenario": split,
        "threat": {"seat": "feature-party"},
        "attacks": ["clustering"],
        "grid": {"victims": "all", "stages": ["training"], "batch_sizes": [128]},
    }
    plan = parse_plan(document)
    assert {cell.victims for cell in plan.cells() if cell.purpose != "control"} == {22}
    assert Plan.model_validate(plan.to_dict()) == plan
    for changed in ({"grid": {"victims": "all"}}, {"scenario": {"data": "digits", "model": "mlp"}}):
        with pytest.raises(InvalidValue, match="can be `all` for split learning at the stage `training` alone"):
            parse_plan({**document, **changed}).cells()
    with pytest.raises(InvalidValue, match=r"must be a whole number or `all`. Got 'most' instead"):
        parse_plan({**document, "grid": {"victims": "most"}})


def test_further_probes_belong_to_a_scenario_and_count_as_cells(
    toy_plan: Plans, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = toy_plan(seeds=(0, 1))
    [name], [(label, probe)] = list(plan.scenarios), list(plan.probes.items())[:1]
    more = {"defence": plan.scenarios[name].baseline, "label": f"{label}, longer", "probe": probe}
    with pytest.raises(InvalidValue, match=r"^There is no scenario named `elsewhere`\."):
        Plan.model_validate({**dict(plan), "further": ({"scenario": "elsewhere", **more},)})
    count = 2 * len(plan.probes) * (1 + len(plan.defences))
    monkeypatch.setattr("leaktight.plans.plan.MOST_CELLS", count + 2)
    further = {"scenario": name, **more}
    assert Plan.model_validate({**dict(plan), "further": (further,)}).further
    with pytest.raises(InvalidValue, match=f"at most {count + 2} cells. Got {count + 4}; make several"):
        Plan.model_validate({**dict(plan), "further": (further, {**further, "label": "another"})})
