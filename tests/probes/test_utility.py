from __future__ import annotations

from pathlib import Path

from leaktight.core import registry
from leaktight.core.probe import Probe
from leaktight.core.random import stream
from leaktight.core.run import Run
from leaktight.data import Digits
from leaktight.defences import GaussianNoise
from leaktight.learning import Federated
from leaktight.models import MLP
from leaktight.plans import Grid, Plan
from leaktight.probes import Utility
from leaktight.running import run


def test_it_is_found_by_its_kind() -> None:
    assert registry.classes("probe")["utility"] is Utility
    assert Probe.model_validate({"kind": "utility"}) == Utility()


def test_it_finds_nothing_and_touches_nothing() -> None:
    nothing: Run = None  # type: ignore[assignment]
    found = Utility().read(nothing, stream(0, "unused"))
    assert (found.readings, found.guess, found.truth) == ((), None, ())


def test_its_record_carries_the_utility_of_the_training_alone(tmp_path: Path) -> None:
    scenario = Federated(data=Digits(), model=MLP(), participants=2, rounds=2)
    plan = Plan(
        scenarios={"1": scenario},
        defences=(GaussianNoise(std=0.1),),
        probes={"utility": Utility()},
        grid=Grid(victims=1),
    )
    records = [record for record in run(plan, tmp_path) if record.cell.purpose == "measure"]
    assert [record.cell.defence.kind for record in records] == ["none", "gaussian_noise"]
    for record in records:
        training = scenario.train(record.cell.defence, seed=0)
        assert record.readings == training.utility
