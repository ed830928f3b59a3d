"""Counterfactual: the same senders, examples and parameters, and only what was sent differs."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from leaktight.attacks import Analytic
from leaktight.core.defence import Chain, Undefended
from leaktight.core.errors import Refusal
from leaktight.core.message import Kind
from leaktight.core.probe import Attempt
from leaktight.core.random import stream
from leaktight.core.run import Run
from leaktight.defences import ClassKeys, GaussianNoise, Pruning, Transformation
from leaktight.learning.gradient import gradient
from leaktight.metrics import MSE
from leaktight.probes import Counterfactual
from leaktight.probes.counterfactual import counterfactual
from leaktight.testing import toy_run
from leaktight.transforms.policy import Policy

POLICY = Transformation(policy=Policy.of("0"))


@pytest.fixture(scope="module")
def run() -> Run:
    return toy_run(rounds=2, batch_size=2)


def test_without_a_defence_the_same_is_sent(run: Run) -> None:
    again = counterfactual(run, Undefended())
    assert [message.key for message in again.transcript] == [message.key for message in run.transcript]
    for message, former in zip(again.transcript, run.transcript, strict=True):
        assert message.facts == former.facts
        for name, tensor in former.tensors.items():
            torch.testing.assert_close(message.tensors[name], tensor)


def test_what_is_sent_is_the_gradient_of_the_transformed_examples(run: Run) -> None:
    inverted = counterfactual(run, POLICY)
    assert inverted.defence == POLICY
    for key, ground_truth in inverted.truths.items():
        before = run.truths[key]
        torch.testing.assert_close(ground_truth.raw.inputs, before.raw.inputs)
        # Function 0 inverts, after rounding to 8 bits.
        used = 1 - (before.raw.inputs * 255).round() / 255
        torch.testing.assert_close(ground_truth.used.inputs, used)
        [asked] = [one for one in run.transcript if (one.kind, one.receiver, one.round) == (Kind.PARAMETERS, *key)]
        wanted = gradient(
            run.public, run.public.model_parameters(asked.tensors), dataclasses.replace(before.raw, inputs=used)
        ).tensors
        for name, tensor in run.public.outward(wanted).items():
            torch.testing.assert_close(ground_truth.sent.tensors[name], tensor)
        assert ground_truth.plain == before.clean
        assert ground_truth.sent in inverted.transcript


def test_it_is_drawn_from_the_sender_s_seed_and_leaves_the_run_as_it_was(run: Run) -> None:
    before = [{name: tensor.clone() for name, tensor in message.tensors.items()} for message in run.transcript]
    one, other = (counterfactual(run, GaussianNoise(std=0.1)) for _ in range(2))
    for message, again in zip(one.transcript, other.transcript, strict=True):
        assert all(torch.equal(tensor, again.tensors[name]) for name, tensor in message.tensors.items())
    for message, tensors in zip(run.transcript, before, strict=True):
        assert all(torch.equal(tensor, message.tensors[name]) for name, tensor in tensors.items())
    assert run.defence == Undefended()


def test_the_probe_sees_the_defended_run(run: Run) -> None:
    single = toy_run(batch_size=1)
    attempt = Attempt(attack=Analytic(), metrics=(MSE(),))
    probe = Counterfactual(defence=POLICY, probe=attempt)
    found = {reading.against: reading.value for reading in probe.read(single, stream(0, "probe")).readings}
    # The attack is exact on what was trained on, and that is the inverse of what is owned.
    assert found["used"] < 1e-6 < 1e-3 < found["raw"]


def test_it_goes_to_json_and_back() -> None:
    probe = Counterfactual(defence=Pruning(rate=0.5), probe=Attempt(attack=Analytic(), metrics=(MSE(),)))
    assert Counterfactual.model_validate(probe.to_dict()) == probe


def test_what_cannot_be_told_is_refused(run: Run) -> None:
    noise = GaussianNoise(std=0.1)
    with pytest.raises(Refusal, match=r"needs a run without a defence. This one has gaussian_noise\(std=0.1\)"):
        counterfactual(dataclasses.replace(run, defence=noise), noise)
    with pytest.raises(Refusal, match="leaves the agreed task as it is"):
        counterfactual(run, Chain(links=(noise, ClassKeys())))
    update = [
        dataclasses.replace(message, kind=Kind.UPDATE) if message.kind is Kind.GRADIENT else message
        for message in run.transcript
    ]
    with pytest.raises(Refusal, match=r"needs a run of gradients. This one has a message of kind update"):
        counterfactual(dataclasses.replace(run, transcript=tuple(update)), noise)


def test_a_message_that_nobody_stands_behind_stays(run: Run) -> None:
    bare = counterfactual(dataclasses.replace(run, truths={}), GaussianNoise(std=1.0))
    assert bare.transcript == run.transcript
