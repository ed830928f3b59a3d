"""Sensitivity: Eq. 9 and 10 against the Jacobian that autograd builds entry by entry."""

import dataclasses

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from leaktight.core.task import Batch, Model, Task
from leaktight.learning import layer_sensitivity, sensitivity
from leaktight.learning.sensitivity import target_jacobians
from leaktight.learning.task import classification


def network() -> Task:
    generator = torch.Generator().manual_seed(3)
    body = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8, 5), nn.Tanh())
    model = Model(body, nn.Linear(5, 3)).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) / 2)
    return classification(model, (1, 4, 4), 3)


@pytest.fixture
def small() -> Task:
    return network()


@pytest.fixture
def batch() -> Batch:
    inputs = torch.rand(6, 1, 4, 4, generator=torch.Generator().manual_seed(4), dtype=torch.float64)
    return Batch(inputs, torch.tensor([0, 1, 2, 2, 1, 0]))


def by_autograd(task: Task, inputs: torch.Tensor, target: torch.Tensor) -> dict[str, tuple[torch.Tensor, torch.Tensor]]:
    """Return gradient and full Jacobian of each layer: plain double backward, no transformation of functions."""
    names = list(task.model.tensors())
    found = {}
    for layer in dict.fromkeys(name.rpartition(".")[0] for name in names):
        own = [dict(task.model.named_parameters())[name] for name in names if name.rpartition(".")[0] == layer]

        def gradient(towards: torch.Tensor, own: list[torch.Tensor] = own) -> torch.Tensor:
            loss = -(task.model(inputs[None]).log_softmax(1)[0] * towards).sum()
            return torch.cat([part.flatten() for part in torch.autograd.grad(loss, own, create_graph=True)])

        found[layer] = gradient(target).detach(), torch.autograd.functional.jacobian(gradient, target)
    return found


def test_the_jacobian_is_that_of_the_gradient_by_the_target(small, batch):
    target = torch.tensor([0.2, 0.5, 0.3], dtype=torch.float64)
    gradients, jacobians = target_jacobians(small, small.model.tensors(), batch.inputs[0], target)
    expected = by_autograd(small, batch.inputs[0], target)
    assert list(gradients) == list(jacobians) == list(expected) == ["body.0", "body.3", "head"]
    for layer, (gradient, jacobian) in expected.items():
        assert torch.allclose(gradients[layer], gradient, atol=1e-12)
        assert torch.allclose(jacobians[layer].T, jacobian, atol=1e-12)
        assert jacobian.any()


def test_equation_10_with_the_frobenius_norm(small, batch):
    found = layer_sensitivity(small, small.model.tensors(), batch)
    total = dict.fromkeys(found, 0.0)
    for inputs, label in zip(batch.inputs, batch.labels, strict=True):
        for layer, (gradient, jacobian) in by_autograd(small, inputs, F.one_hot(label, 3).double()).items():
            span = gradient.max() - gradient.min()
            total[layer] += torch.linalg.matrix_norm(jacobian / span).item() / len(gradient) ** 0.5
    assert found == pytest.approx({layer: value / len(batch) for layer, value in total.items()})


def test_it_is_measured_at_the_given_parameters(small, batch):
    other = {name: 1.5 * tensor for name, tensor in small.model.tensors().items()}
    moved = network()
    moved.model.load_state_dict(other)
    here, there = (layer_sensitivity(task, other, batch) for task in (small, moved))
    assert here == pytest.approx(there)
    assert here != pytest.approx(layer_sensitivity(small, small.model.tensors(), batch))


def test_how_many_examples_are_differentiated_at_once_changes_nothing(small, batch, monkeypatch):
    whole = layer_sensitivity(small, small.model.tensors(), batch)
    monkeypatch.setattr(sensitivity, "ENTRIES", 1)
    assert layer_sensitivity(small, small.model.tensors(), batch) == pytest.approx(whole)


def test_a_scale_of_the_loss_changes_nothing(small, batch):
    loud = dataclasses.replace(small, loss=lambda outputs, labels: 100 * small.loss(outputs, labels))
    one, other = (layer_sensitivity(task, task.model.tensors(), batch) for task in (small, loud))
    assert one == pytest.approx(other)


def test_units_that_are_off_add_nothing(small, batch):
    dead = {name: -tensor.abs() if name.startswith("body.0") else tensor for name, tensor in small.model.tensors().items()}
    found = layer_sensitivity(small, dead, batch)
    assert found["body.0"] == 0
    assert found["head"] > 0


def test_what_is_not_a_number_does_not_pass_for_insensitive(small, batch):
    broken = {name: tensor * torch.nan if name == "head.bias" else tensor for name, tensor in small.model.tensors().items()}
    assert all(value != value for value in layer_sensitivity(small, broken, batch).values())


def test_layers_go_by_wire_name_and_what_stays_home_is_left_out(small, batch):
    def wire(name: str) -> str | None:
        return None if name.startswith("head") else name.replace("body", "shared")

    renamed = dataclasses.replace(small, wire=wire)
    plain = layer_sensitivity(small, small.model.tensors(), batch)
    found = layer_sensitivity(renamed, small.model.tensors(), batch)
    assert found == {"shared.0": plain["body.0"], "shared.3": plain["body.3"]}
