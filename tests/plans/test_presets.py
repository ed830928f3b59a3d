"""The ready audits run the suite alone and break two of the demo's defences; a glance takes what needs no search."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from leaktight import plans
from leaktight.attacks import preset
from leaktight.core.defence import Defence, Undefended
from leaktight.core.in_memory import hold
from leaktight.core.probe import Attempt
from leaktight.core.random import stream
from leaktight.core.run import Run
from leaktight.core.scenario import Observation
from leaktight.core.threat import Knows
from leaktight.data import Digits
from leaktight.defences import GaussianNoise, TopK
from leaktight.findings.summary import summarise
from leaktight.models.in_memory import InMemory
from leaktight.plans.presets import WITHOUT_SEARCH, glance
from leaktight.running import run

STRONGEST = "strongest"


def _observed(plan: plans.Plan, defence: Defence, victims: int) -> Run:
    """Return what is seen of a plan's untrained model, in its first setting."""
    grid = plan.grid
    assert grid.stages == ("initial",)
    [scenario] = plan.with_scenarios(rounds=0).scenarios.values()
    seed = grid.seeds[0]
    return scenario.observe(
        scenario.train(defence, seed), defence, Observation("initial", grid.batch_sizes[0], victims, seed)
    )


@pytest.mark.parametrize("plan", [plans.quick(), plans.standard()], ids=lambda plan: plan.title)
def test_the_presets_run_it_unchanged_and_grant_it_the_defence_and_public_examples(plan: plans.Plan) -> None:
    assert list(plan.probes) == [STRONGEST]
    probe = plan.probes[STRONGEST]
    assert isinstance(probe, Attempt)
    assert probe.attack == preset(STRONGEST)
    assert probe.threat.knows == {Knows.LOCAL_STEPS, Knows.DEFENCE, Knows.AUXILIARY}


def test_the_demo_attacks_victims_of_several_classes() -> None:
    plan = plans.quick()
    assert isinstance(plan.grid.victims, int)
    run = _observed(plan, Undefended(), plan.grid.victims)
    labels = [int(label) for ground_truth in run.truths.values() for label in ground_truth.raw.labels]
    assert len(labels) == 8
    assert len(set(labels)) >= 5


@pytest.mark.long
@pytest.mark.parametrize(
    "defence", [GaussianNoise(std=0.001), pytest.param(TopK(share=0.1), marks=pytest.mark.long)], ids=str
)
def test_it_recognises_images_under_two_of_the_defences(defence: Defence) -> None:
    plan = plans.quick()
    assert defence in plan.defences
    readings = plan.probes[STRONGEST].read(_observed(plan, defence, victims=1), stream(0)).readings
    assert next(one for one in readings if one.name == "reconstruction_statement" and not one.by).value > 0


def test_a_glance_asks_only_what_needs_no_search_training_or_defence() -> None:
    plan = glance(plans.quick())
    cells = [cell for cell in plan.cells() if cell.purpose == "measure"]
    assert all(attack.simple for attack in WITHOUT_SEARCH)
    assert {(cell.stage, cell.defence.kind, cell.scenario.rounds) for cell in cells} == {("initial", "none", 0)}
    assert (plan.grid.victims, plan.grid.batch_sizes) == (plans.quick().grid.victims, plans.quick().grid.batch_sizes)


def test_a_glance_says_what_a_network_in_training_mode_gives_away_at_once(tmp_path: Path) -> None:
    torch.manual_seed(0)
    network = nn.Sequential(
        nn.Conv2d(1, 4, 3, stride=2), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Dropout(0.1), nn.Linear(36, 10)
    )
    plan = plans.quick(model=InMemory(name="Net"), data=Digits(size=8)).with_scenarios(device="cpu")
    with hold({(InMemory.family, "Net"): network}):
        records = run(glance(plan), tmp_path)
    words = {judgement.kind.kind: judgement.verdict for judgement in summarise(records).judgements}
    assert (words["labels"], words["batch_statistics"]) == ("leaks", "leaks")
