"""The quick audit runs the suite, which knows the defences, and breaks two of them: the picture in the README."""

from __future__ import annotations

import pytest

from leaktight import audit
from leaktight.attacks import Strongest
from leaktight.core.defence import Defence
from leaktight.core.probe import Attempt
from leaktight.core.random import stream
from leaktight.core.scenario import Observation
from leaktight.core.threat import Knows
from leaktight.defences import GaussianNoise, TopK


@pytest.mark.parametrize("plan", [audit.quick(), audit.standard()], ids=lambda plan: plan.title)
def test_the_presets_run_the_suite_unchanged_and_let_it_know_defence_and_public_examples(plan: audit.Plan) -> None:
    [probe] = plan.probes.values()
    assert isinstance(probe, Attempt)
    assert probe.attack == Strongest()
    assert probe.threat.knows == {Knows.LOCAL_STEPS, Knows.DEFENCE, Knows.AUXILIARY}


@pytest.mark.parametrize("defence", [GaussianNoise(std=0.001), pytest.param(TopK(share=0.1), marks=pytest.mark.long)], ids=str)
def test_it_recognises_images_under_two_of_the_defences(defence: Defence) -> None:
    plan = audit.quick()
    assert defence in plan.defences
    [scenario] = plan.scenarios.values()
    untrained = scenario.model_copy(update={"rounds": 0})
    run = untrained.observe(untrained.train(defence, seed=0), defence, Observation("initial", batch_size=1, victims=2, seed=0))
    [probe] = plan.probes.values()
    readings = probe.read(run, stream(0)).readings
    assert next(one for one in readings if one.name == "reconstruction_statement").value > 0
