"""The toys' answers are the known ones."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from leaktight.core.message import Kind
from leaktight.core.random import stream
from leaktight.core.threat import ThreatModel
from leaktight.defences import GaussianNoise
from leaktight.testing.conformance import picture
from leaktight.testing.toys import (
    CLASSES,
    SHAPE,
    mark_property,
    null_run,
    property_run,
    toy_batch,
    toy_message,
    toy_parameters,
    toy_run,
    toy_task,
)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e6])
def test_one_example_is_the_ratio_of_weight_and_bias_under_any_loss(scale: float) -> None:
    batch = toy_batch(1)
    sent = toy_message(toy_task(loss_scale=scale), batch).tensors
    for row in range(16):
        x = sent["body.1.weight"][row] / sent["body.1.bias"][row]
        assert torch.allclose(x, batch.inputs.flatten(), atol=1e-4)


def test_the_gradient_of_the_head_s_bias_is_probabilities_minus_labels() -> None:
    task, batch = toy_task(), toy_batch(5)
    wanted = task.model(batch.inputs).softmax(1).mean(0) - F.one_hot(batch.labels, CLASSES).float().mean(0)
    assert torch.allclose(toy_message(task, batch).tensors["head.bias"], wanted, atol=1e-6)


def test_toys_follow_from_their_seeds_alone() -> None:
    state = torch.random.get_rng_state()
    pictures = [[picture(message.tensors) for message in toy_run(GaussianNoise(), seed=3).transcript] for _ in range(2)]
    assert pictures[0] == pictures[1]
    assert torch.equal(state, torch.random.get_rng_state())
    assert picture(toy_task(0).model.state_dict()) != picture(toy_task(1).model.state_dict())
    assert not torch.equal(toy_batch(seed=0).inputs, toy_batch(seed=1).inputs)


def test_a_batch_has_pixels_and_every_class() -> None:
    batch = toy_batch(64)
    assert batch.inputs.shape[1:] == SHAPE
    assert batch.inputs.min() >= 0
    assert batch.inputs.max() <= 1
    assert set(batch.labels.tolist()) == set(range(CLASSES))


def test_scalars_add_the_shapes_that_are_easily_forgotten() -> None:
    shapes = [tuple(tensor.shape) for tensor in toy_task(scalars=True).public_parameters().values()]
    assert () in shapes
    assert (1,) in shapes


def test_a_run_s_parameters_are_not_the_model_s_own() -> None:
    run = toy_run(rounds=1)
    sent, own = run.transcript[0].tensors, run.public.public_parameters()
    assert picture(sent) == picture(toy_parameters(run.public))
    assert all(not torch.equal(sent[name], own[name]) for name in own)


def test_a_run_s_messages_are_the_gradients_of_its_batches() -> None:
    run = toy_run(rounds=2, batch_size=3)
    for (_, number), ground_truth in run.truths.items():
        task = toy_task()
        task.model.load_state_dict(dict(run.transcript[2 * number].tensors))
        for name, tensor in toy_message(task, ground_truth.raw).tensors.items():
            assert torch.allclose(ground_truth.sent.tensors[name], tensor, atol=1e-6)


def test_a_run_can_be_viewed() -> None:
    assert len(ThreatModel().view(toy_run()).exchanges()) == 3


def test_a_null_run_keeps_norms_and_nothing_else() -> None:
    run = toy_run()
    null = null_run(run)
    assert len(null.transcript) == len(run.transcript)
    for before, after in zip(run.transcript, null.transcript, strict=True):
        if before.kind is Kind.PARAMETERS:
            assert picture(before.tensors) == picture(after.tensors)
            continue
        for name, tensor in before.tensors.items():
            other = after.tensors[name]
            assert torch.allclose(tensor.norm(), other.norm(), rtol=1e-4)
            assert abs(F.cosine_similarity(tensor.flatten(), other.flatten(), dim=0).item()) < 0.95
    assert picture(null_run(run).transcript[1].tensors) == picture(null.transcript[1].tensors)
    assert stream(0, "null").initial_seed() != stream(1, "null").initial_seed()


def test_marked_examples_show_their_property_in_two_pixels_and_nothing_else() -> None:
    plain, batch = toy_batch(200), mark_property(toy_batch(200))
    assert batch.properties is not None
    pixels = batch.inputs.flatten(1)
    assert torch.equal(pixels[:, 0].long(), batch.properties)
    assert torch.equal(pixels[:, 1].long(), batch.properties)
    assert torch.equal(pixels[:, 2:], plain.inputs.flatten(1)[:, 2:])
    assert torch.equal(batch.labels, plain.labels)
    assert abs(torch.corrcoef(torch.stack([batch.labels.float(), batch.properties.float()]))[0, 1].item()) < 0.2


def test_a_property_run_has_pure_messages_of_both_kinds_and_public_examples_too() -> None:
    run = property_run(GaussianNoise(std=0.1), rounds=20, batch_size=4)
    held = [
        int(ground_truth.raw.properties.sum())
        for ground_truth in run.truths.values()
        if ground_truth.raw.properties is not None
    ]
    assert sorted(held) == [0] * 10 + [4] * 10
    assert run.auxiliary is not None
    assert run.auxiliary.properties is not None
    assert run.auxiliary.properties.bincount().tolist() == [32, 32]
    assert run.defence == GaussianNoise(std=0.1)
    # What is public is not what the client owns.
    owned = {tuple(row.tolist()) for ground_truth in run.truths.values() for row in ground_truth.raw.inputs.flatten(1)}
    assert not owned & {tuple(row.tolist()) for row in run.auxiliary.inputs.flatten(1)}
