from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from leaktight.core import registry
from leaktight.core.errors import InvalidValue, Refusal
from leaktight.core.random import normal_like, stream
from leaktight.core.task import Model, Task
from leaktight.learning import classification
from leaktight.models import ConvNet, DLNet, LeNet
from leaktight.models.network import Network
from leaktight.probes import AccuracyScore
from leaktight.probes.accuracy_score import accuracy_score
from leaktight.testing import toy_batch, toy_run, toy_task


def literal(task: Task, parameters: dict[str, Tensor], images: Tensor) -> float:
    """One backward pass for each image, then NumPy's correlation and eigenvalues of a general matrix."""
    rows = []
    for image in images:
        leaf = image[None].clone().requires_grad_(True)
        torch.func.functional_call(task.model, parameters, (leaf,)).sum().backward()
        rows.append(leaf.grad.double().flatten().numpy())
    values = np.linalg.eigvals(np.corrcoef(np.stack(rows))).real
    return -sum(math.log(max(value, 0) + 1e-5) + 1 / (max(value, 0) + 1e-5) for value in values) / len(values)


@pytest.mark.parametrize(
    ("network", "shape"), [(DLNet(), (3, 16, 16)), (LeNet(), (1, 28, 28)), (ConvNet(width=2), (3, 12, 12))], ids=str
)
@pytest.mark.parametrize("chunk", [1, 4, 128])
def test_the_score_is_that_of_the_literal_loop(network: Network, shape: tuple[int, ...], chunk: int) -> None:
    task = classification(network.build(shape, 4, seed=0), shape, 4)
    rng = stream(0, "problem")
    parameters = {name: tensor + 0.05 * normal_like(tensor, rng) for name, tensor in task.model.tensors().items()}
    images = torch.rand(9, *shape, generator=rng)
    assert accuracy_score(task, parameters, images, chunk) == pytest.approx(literal(task, parameters, images), rel=1e-5)


class Square(nn.Module):
    """Half the squared pixels: the derivative of its sum is the image itself."""

    def forward(self, inputs: Tensor) -> Tensor:
        return inputs.flatten(1) ** 2 / 2


def squares(pixels: int) -> tuple[Task, dict[str, Tensor]]:
    task = classification(Model(Square(), nn.Linear(pixels, 2, bias=False)), (1, 1, pixels), 2)
    return task, {"head.weight": torch.stack([torch.ones(pixels), torch.zeros(pixels)])}


def test_uncorrelated_images_have_the_best_score_there_is() -> None:
    """Rows of a Hadamard matrix sum to zero and are orthogonal, but for the first."""
    task, parameters = squares(4)
    images = torch.tensor([[1.0, -1, 1, -1], [1, 1, -1, -1], [1, -1, -1, 1]]).view(3, 1, 1, 4)
    assert accuracy_score(task, parameters, images) == pytest.approx(-1, abs=1e-4)


def test_equal_images_cost_an_eigenvalue_each() -> None:
    task, parameters = squares(4)
    images = torch.tensor([[1.0, 2, 3, 5]]).repeat(4, 1).view(4, 1, 1, 4)
    wanted = -(math.log(4 + 1e-5) + 1 / (4 + 1e-5) + 3 * (math.log(1e-5) + 1e5)) / 4
    assert accuracy_score(task, parameters, images) == pytest.approx(wanted, rel=1e-6)


def test_an_image_without_a_response_counts_as_an_eigenvalue_of_zero() -> None:
    task, parameters = squares(4)
    images = torch.tensor([[1.0, -1, 1, -1], [1, 1, -1, -1], [2, 2, 2, 2]]).view(3, 1, 1, 4)
    wanted = -(2 * 1 + math.log(1e-5) + 1e5) / 3
    assert accuracy_score(task, parameters, images) == pytest.approx(wanted, rel=1e-6)


def test_images_that_look_alike_score_lower() -> None:
    task = toy_task()
    images = toy_batch(6).inputs
    alike = images[:1] + 0.01 * images
    parameters = task.model.tensors()
    assert accuracy_score(task, parameters, alike) < accuracy_score(task, parameters, images) < -1


@pytest.mark.parametrize(("count", "chunk"), [(1, 8), (0, 8), (3, 0)])
def test_too_few_are_refused_in_one_sentence(count: int, chunk: int) -> None:
    task = toy_task()
    sentence = f"needs at least 2 images and a chunk of at least 1. Got {count} images and a chunk of {chunk} instead."
    with pytest.raises(InvalidValue, match=sentence):
        accuracy_score(task, task.model.tensors(), toy_batch(4).inputs[:count], chunk)


def test_the_probe_reads_public_examples_only() -> None:
    run = toy_run(rounds=2)
    [found] = AccuracyScore(samples=6).read(run, stream(0)).readings
    assert (found.name, found.n, found.leaks, found.low) == ("accuracy_score", 6, None, None)
    drawn = run.auxiliary.take(torch.randperm(32, generator=stream(0))[:6])
    sent = run.public.model_parameters(run.transcript[2].tensors)
    assert found.value == pytest.approx(literal(run.public, sent, drawn.inputs), rel=1e-5)
    blind = dataclasses.replace(run, truths={}, locals={})
    assert AccuracyScore(samples=6).read(blind, stream(0)).readings == (found,)


def test_the_policy_counts() -> None:
    run = toy_run()
    values = {
        AccuracyScore(policy=policy, samples=8).read(run, stream(0)).readings[0].value
        for policy in (None, "3", "15-15-15")
    }
    assert len(values) == 3


def test_the_probe_is_found_by_its_kind_and_refuses() -> None:
    assert registry.classes("probe")["accuracy_score"] is AccuracyScore
    with pytest.raises(InvalidValue, match="The `samples` of accuracy_score must be at least 2"):
        AccuracyScore(samples=1)
    with pytest.raises(Refusal, match="accuracy_score needs public examples"):
        AccuracyScore().read(dataclasses.replace(toy_run(), auxiliary=None), stream(0))


def test_policies_are_scored_on_the_same_examples() -> None:
    assert AccuracyScore(policy="0-3").draws == AccuracyScore().draws != AccuracyScore(samples=5).draws
