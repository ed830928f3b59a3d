"""The quick audit runs an attack that knows the defences and breaks two of them: the picture in the README."""

from __future__ import annotations

import pytest

from leaktight import audit
from leaktight.attacks import preset
from leaktight.core.defence import Defence
from leaktight.core.random import stream
from leaktight.core.scenario import Observation
from leaktight.core.threat import Knows
from leaktight.defences import GaussianNoise, TopK

POSTERIOR = "posterior"


@pytest.mark.parametrize("plan", [audit.quick(), audit.standard()], ids=lambda plan: plan.title)
def test_the_presets_run_it_unchanged_and_let_it_know_the_defence(plan: audit.Plan) -> None:
    assert plan.probes[POSTERIOR].attack == preset(POSTERIOR)
    granted = {name: probe.threat.knows for name, probe in plan.probes.items()}
    assert granted.pop(POSTERIOR) == {Knows.LOCAL_STEPS, Knows.DEFENCE}
    assert set(granted.values()) == {frozenset({Knows.LOCAL_STEPS})}


@pytest.mark.parametrize("defence", [GaussianNoise(std=0.001), pytest.param(TopK(share=0.1), marks=pytest.mark.long)], ids=str)
def test_it_recognises_images_under_two_of_the_defences(defence: Defence) -> None:
    plan = audit.quick()
    assert defence in plan.defences
    [scenario] = plan.scenarios.values()
    run = scenario.observe(scenario.train(defence, seed=0), defence, Observation("initial", batch_size=1, victims=2, seed=0))
    readings = plan.probes[POSTERIOR].read(run, stream(0)).readings
    assert next(one for one in readings if one.name == "reconstruction_statement").value > 0
