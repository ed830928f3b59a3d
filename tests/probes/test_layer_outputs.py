from __future__ import annotations

import dataclasses

import pytest
import torch
from torch import Tensor, nn

from leaktight.core.random import global_seed
from leaktight.core.task import Model, Task
from leaktight.learning import classification
from leaktight.models import VGG11Net
from leaktight.probes.layer_outputs import LayerOutputs
from leaktight.testing import toy_batch, toy_task


def task_of(body: nn.Module, width: int) -> Task:
    with global_seed(0):
        return classification(Model(body, nn.Linear(width, 2)), (1, 4, 4), 2)


@pytest.fixture
def inputs() -> Tensor:
    return toy_batch(3, shape=(1, 4, 4)).inputs


def outputs(task: Task, inputs: Tensor) -> dict[str, Tensor]:
    return LayerOutputs(task, task.model.tensors())(inputs)


def test_a_layer_is_read_after_its_activation_and_before_pooling(inputs: Tensor) -> None:
    with global_seed(0):
        body = nn.Sequential(
            nn.Conv2d(1, 2, 3),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(2, 5),
            nn.ConstantPad1d(1, 0.0),
            nn.Tanh(),
        )
    task = task_of(body, 7)
    found = outputs(task, inputs)
    assert list(found) == ["body.0", "body.4", "head"]
    assert torch.equal(found["body.0"], body[:2](inputs).flatten(1))
    # Something stands between this layer and its activation.
    assert torch.equal(found["body.4"], body[:5](inputs))
    assert torch.equal(found["head"], task.model(inputs))
    assert not any(rows.requires_grad for rows in found.values())


def test_a_norm_is_a_layer_of_its_own(inputs: Tensor) -> None:
    with global_seed(0):
        body = nn.Sequential(nn.Conv2d(1, 4, 3), nn.GroupNorm(2, 4), nn.ReLU(), nn.Flatten())
    found = outputs(task_of(body, 16), inputs)
    assert torch.equal(found["body.0"], body[:1](inputs).flatten(1))
    assert torch.equal(found["body.1"], body(inputs))


def test_an_activation_in_place_is_seen(inputs: Tensor) -> None:
    with global_seed(0):
        body = nn.Sequential(nn.Flatten(), nn.Linear(16, 5), nn.ReLU(inplace=True))
    assert (outputs(task_of(body, 5), inputs)["body.1"] >= 0).all()


class Twice(nn.Module):
    """Calls one layer twice and another never."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.idle = nn.Linear(16, 16), nn.Linear(16, 16)

    def forward(self, inputs: Tensor) -> Tensor:
        return torch.relu(self.first(self.first(inputs.flatten(1))))


def test_the_last_call_counts_and_a_layer_without_one_is_left_out(inputs: Tensor) -> None:
    with global_seed(0):
        body = Twice()
    found = outputs(task_of(body, 16), inputs)
    assert list(found) == ["body.first", "head"]
    # The function in `forward` is not seen.
    assert torch.equal(found["body.first"], body.first(body.first(inputs.flatten(1))))


def test_the_given_parameters_count_and_the_model_stays_as_it_was() -> None:
    task, inputs = toy_task(), toy_batch(4).inputs
    before = {name: tensor.clone() for name, tensor in task.model.tensors().items()}
    moved = {name: tensor + 1 for name, tensor in before.items()}
    found = LayerOutputs(task, moved)(inputs)
    assert torch.equal(found["head"], task.forward(moved, inputs))
    assert all(torch.equal(tensor, before[name]) for name, tensor in task.model.tensors().items())
    assert not any(module._forward_hooks for module in task.model.modules())


def test_layers_have_the_names_of_messages() -> None:
    task = dataclasses.replace(toy_task(), wire=lambda name: None if name.startswith("head") else f"shared.{name}")
    assert list(outputs(task, toy_batch(2).inputs)) == ["shared.body.1"]


def test_all_layers_of_a_deep_network_are_there() -> None:
    task = classification(VGG11Net().build((3, 16, 16), 2, seed=0), (3, 16, 16), 2)
    found = outputs(task, torch.rand(2, 3, 16, 16))
    assert list(found) == [*(f"body.conv{n}" for n in range(1, 9)), "body.linear1", "body.linear2", "head"]
    assert all((rows >= 0).all() for layer, rows in found.items() if layer != "head")
    assert found["body.conv8"].shape == (2, 64 * 4 * 4)
