"""The quick audit runs an attack that breaks two of its defences: the picture in the README."""

from __future__ import annotations

import pytest

from leaktight import audit
from leaktight.attacks import preset
from leaktight.core.defence import Defence
from leaktight.core.random import stream
from leaktight.core.scenario import Observation
from leaktight.defences import GaussianNoise, TopK

COSINE_SIGN_BOX = "cosine-sign-box"


@pytest.mark.parametrize("plan", [audit.quick(), audit.standard()], ids=lambda plan: plan.title)
def test_the_presets_run_it_unchanged(plan: audit.Plan) -> None:
    assert plan.probes[COSINE_SIGN_BOX].attack == preset(COSINE_SIGN_BOX)


@pytest.mark.parametrize("defence", [GaussianNoise(std=0.001), TopK(share=0.1)], ids=str)
def test_it_recognises_images_under_two_of_the_defences(defence: Defence) -> None:
    plan = audit.quick()
    assert defence in plan.defences
    [scenario] = plan.scenarios.values()
    run = scenario.observe(scenario.train(defence, seed=0), defence, Observation("initial", batch_size=1, victims=3, seed=0))
    readings = plan.probes[COSINE_SIGN_BOX].read(run, stream(0)).readings
    assert next(one for one in readings if one.name == "reconstruction_statement").value > 0
