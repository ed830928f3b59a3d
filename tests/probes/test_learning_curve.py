"""The learning curve: the accuracy of what was handed out, on public examples and on the participants' own."""

from __future__ import annotations

import dataclasses

import pytest
import torch
from torch import nn

from leaktight.core.errors import InvalidValue, Refusal
from leaktight.core.message import Kind
from leaktight.core.random import stream
from leaktight.core.run import Run
from leaktight.core.scenario import Observation
from leaktight.data import Digits
from leaktight.learning import Federated
from leaktight.learning.optimiser import Sgd
from leaktight.learning.protocol import FedSGD
from leaktight.models import MLP
from leaktight.probes import LearningCurve
from leaktight.statistics.interval import wilson
from leaktight.testing import toy_run


@pytest.fixture(scope="module")
def run() -> Run:
    return toy_run(rounds=3)


def test_values_are_shares_of_right_answers_of_what_was_handed_out(run: Run) -> None:
    assert run.auxiliary is not None
    # As many as there are: then order does not matter.
    everything = LearningCurve(examples=10_000)
    found = {reading.name: reading for reading in everything.read(run, stream(0, "curve")).readings}
    handed = [message for message in run.transcript if message.kind is Kind.PARAMETERS]
    assert len(found) == 4 * len(handed) == 12
    for message in handed:
        with torch.no_grad():
            outputs = run.public.forward(run.public.model_parameters(message.tensors), run.auxiliary.inputs)
        right = int((outputs.argmax(1) == run.auxiliary.labels).sum())
        reading = found[f"accuracy_after_{message.round}"]
        assert reading.value == pytest.approx(right / len(run.auxiliary))
        assert (reading.low, reading.high) == pytest.approx(wilson(right, len(run.auxiliary)))
        assert reading.n == len(run.auxiliary)
        loss, wanted = found[f"loss_after_{message.round}"], nn.functional.cross_entropy(outputs, run.auxiliary.labels)
        assert loss.value == pytest.approx(wanted.item(), rel=1e-5)
        assert loss.low is not None
        assert loss.high is not None
        assert loss.low < loss.value < loss.high


def test_own_examples_are_what_senders_own_or_else_all_that_they_sent_about(run: Run) -> None:
    everything = LearningCurve(examples=10_000)

    def count(run: Run) -> set[int]:
        return {one.n for one in everything.read(run, stream(0, "curve")).readings if one.name.startswith("own")}

    assert run.auxiliary is not None
    owned = {key: dataclasses.replace(ground_truth, owned=run.auxiliary) for key, ground_truth in run.truths.items()}
    sent = {key: dataclasses.replace(ground_truth, owned=None) for key, ground_truth in run.truths.items()}
    assert count(dataclasses.replace(run, truths=owned)) == {len(run.auxiliary)}
    assert count(dataclasses.replace(run, truths=sent)) == {
        sum(len(ground_truth.raw) for ground_truth in run.truths.values())
    }


def test_so_many_examples_are_drawn_from_the_stream(run: Run) -> None:
    one, same, other = (LearningCurve(examples=3).read(run, stream(0, name)).readings for name in ("a", "a", "b"))
    assert one == same
    assert {reading.n for reading in (*one, *other)} == {3}


def test_a_training_is_followed_from_its_first_round_on() -> None:
    scenario = Federated(
        data=Digits(),
        model=MLP(),
        participants=2,
        rounds=30,
        moments=3,
        protocol=FedSGD(optimiser=Sgd(learning_rate=0.5)),
    )
    training = scenario.train(toy_run().defence, seed=0)
    watched = scenario.observe(training, toy_run().defence, Observation("training", 32, 6, 0))
    found = {reading.name: reading.value for reading in LearningCurve(examples=300).read(watched, stream(0)).readings}
    first, *_, last = [value for name, value in found.items() if name.startswith("accuracy_after")]
    assert "accuracy_after_0" in found
    assert first < 0.3 < 0.5 < last


def test_what_it_cannot_read_is_refused(run: Run) -> None:
    with pytest.raises(Refusal, match="learning_curve needs a message that answers the parameters of a model"):
        kept = tuple(message for message in run.transcript if message.kind is not Kind.PARAMETERS)
        LearningCurve().read(dataclasses.replace(run, transcript=kept), stream(0))
    with pytest.raises(Refusal, match="public"):
        LearningCurve().read(dataclasses.replace(run, auxiliary=None), stream(0))
    with pytest.raises(InvalidValue, match="The `examples` of learning_curve must be at least 1"):
        LearningCurve(examples=0)
