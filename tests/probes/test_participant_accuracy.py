"""Participant accuracy: by hand, on the classes that a participant owns, after its own turn."""

from __future__ import annotations

import pytest
import torch

from leaktight.core.defence import Defence, Undefended
from leaktight.core.errors import Refusal
from leaktight.core.random import stream
from leaktight.core.run import Run
from leaktight.core.scenario import Observation
from leaktight.data import ByClass, Digits
from leaktight.defences import ClassKeys
from leaktight.learning import Federated, RoundRobin, Sgd
from leaktight.models import MLP
from leaktight.probes import ParticipantAccuracy
from leaktight.testing.toys import toy_run

OWNED = (0, 1, 2, 3, 4, 5), (6, 7, 8, 9)
SCENARIO = Federated(
    data=Digits(),
    model=MLP(hidden=(32,)),
    partition=ByClass(owned=OWNED),
    participants=2,
    protocol=RoundRobin(local_steps=5, optimiser=Sgd(learning_rate=0.1)),
    rounds=2,
)


def observe(defence: Defence) -> Run:
    return SCENARIO.observe(SCENARIO.train(defence, 0), defence, Observation("end", 16, 2, 0))


@pytest.mark.parametrize("defence", [Undefended(), ClassKeys(dimensions=256)], ids=lambda defence: defence.kind)
def test_each_participant_is_judged_on_its_own_classes_after_its_turn(defence: Defence) -> None:
    run = observe(defence)
    [reading] = ParticipantAccuracy().read(run, stream(0)).readings
    test, expected = run.auxiliary, []
    assert test is not None
    for owned, asked, sent in zip(OWNED, run.transcript[::2], run.transcript[1::2], strict=True):
        mine = torch.isin(test.labels, torch.tensor(owned))
        task = run.truths[sent.key].task
        model = task.model_parameters({name: asked.tensors[name] + sent.tensors[name] for name in asked.tensors})
        guessed = task.predict(task.forward(model, test.inputs[mine])).argmax(1)
        expected.append((guessed == test.labels[mine]).float().mean().item())
    assert reading.each == pytest.approx(expected)
    assert reading.value == pytest.approx(sum(expected) / 2)
    assert reading.low is not None
    assert reading.high is not None
    assert reading.low < reading.value < reading.high


def test_it_needs_test_examples_of_the_classes() -> None:
    run = toy_run(rounds=1)
    with pytest.raises(Refusal, match="participant_accuracy needs test examples and participants who are honest"):
        ParticipantAccuracy().read(Run(run.transcript, run.public, run.defence, {}), stream(0))
