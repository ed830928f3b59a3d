from __future__ import annotations

import dataclasses

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from leaktight.core.random import global_seed, stream
from leaktight.core.task import Batch, Model, Task
from leaktight.learning.target_jacobian import target_norms
from leaktight.learning.task import as_scores, cross_entropy
from leaktight.testing import toy_batch, toy_task

CLASSES = 3


def bend(outputs: Tensor, labels: Tensor) -> Tensor:
    """A loss whose gradient is not linear in the target: at a one-hot label its slope is not that between labels."""
    return (outputs.softmax(-1) - labels.square()).square().sum(-1) + (outputs * labels.exp()).sum(-1)


@pytest.fixture
def task() -> Task:
    with global_seed(0):
        body = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(16, 5), nn.Tanh())
        return Task(Model(body, nn.Linear(5, CLASSES)), cross_entropy, as_scores, (1, 6, 6), CLASSES)


@pytest.fixture
def batch() -> Batch:
    rng = stream(0, "batch")
    return Batch(torch.rand(5, 1, 6, 6, generator=rng), torch.tensor([0, 1, 2, 1, 0]))


def full(task: Task, inputs: Tensor, label: Tensor, names: list[str]) -> tuple[Tensor, Tensor]:
    """Return one example's gradient in these parameters as a vector, and its whole Jacobian by reverse mode."""
    leaves = {name: tensor.clone().requires_grad_() for name, tensor in task.model.tensors().items()}

    def gradient(target: Tensor) -> Tensor:
        loss = task.loss(task.forward(leaves, inputs[None]), target[None]).sum()
        found = torch.autograd.grad(loss, [leaves[name] for name in names], create_graph=True)
        return torch.cat([each.flatten() for each in found])

    target = F.one_hot(label, CLASSES).float()
    return gradient(target.requires_grad_()).detach(), torch.autograd.functional.jacobian(gradient, target)


@pytest.mark.parametrize("loss", [cross_entropy, bend])
def test_norms_are_those_of_the_whole_jacobian(task: Task, batch: Batch, loss: object) -> None:
    task = dataclasses.replace(task, loss=loss)
    found = target_norms(task, task.model.tensors(), batch)
    assert list(found) == ["body.0", "body.4", "head"]
    for layer, rows in found.items():
        names = [f"{layer}.weight", f"{layer}.bias"]
        for row, inputs, label in zip(rows, batch.inputs, batch.labels, strict=True):
            gradient, jacobian = full(task, inputs, label, names)
            assert jacobian.shape == (len(gradient), CLASSES)
            bound = jacobian / (gradient.max() - gradient.min())
            expected = bound.norm() / len(gradient) ** 0.5, bound.abs().sum() / len(gradient), bound.abs().max()
            assert row.tolist() == pytest.approx([value.item() for value in expected], rel=1e-5)


def test_the_bent_loss_takes_a_derivative(task: Task, batch: Batch) -> None:
    """The difference between two labels' gradients, which is as good as a derivative for cross entropy, is not one here."""
    names = ["head.weight", "head.bias"]
    for loss, same in ((cross_entropy, True), (bend, False)):
        changed = dataclasses.replace(task, loss=loss)
        one, jacobian = full(changed, batch.inputs[0], torch.tensor(0), names)
        other, _ = full(changed, batch.inputs[0], torch.tensor(1), names)
        assert torch.allclose(other - one, jacobian[:, 1] - jacobian[:, 0], atol=1e-6) is same


def test_a_linear_model_has_the_jacobian_by_hand(batch: Batch) -> None:
    """Under cross entropy the gradient is (p - y) outer (x, 1), its column of class c is (p - e_c) outer (x, 1)."""
    with global_seed(0):
        model = Model(nn.Flatten(), nn.Linear(36, CLASSES))
    task = Task(model, cross_entropy, as_scores, (1, 6, 6), CLASSES)
    rows = target_norms(task, model.tensors(), batch)["head"]
    for row, inputs, label in zip(rows, batch.inputs, batch.labels, strict=True):
        extended = torch.cat([inputs.flatten(), torch.ones(1)])
        p = model(inputs[None])[0].softmax(0).detach()
        gradient = torch.outer(p - F.one_hot(label, CLASSES), extended)
        columns = (p - torch.eye(CLASSES)) / (gradient.max() - gradient.min())
        size = CLASSES * 37
        expected = (
            columns.norm() * extended.norm() / size**0.5,
            columns.abs().sum() * extended.abs().sum() / size,
            columns.abs().max() * extended.abs().max(),
        )
        assert row.tolist() == pytest.approx([value.item() for value in expected], rel=1e-5)


@pytest.mark.parametrize("columns", [0, 1, 2, 3, 7])
def test_chunks_change_nothing(task: Task, batch: Batch, columns: int) -> None:
    size = sum(tensor.nbytes for tensor in task.model.tensors().values())
    whole = target_norms(task, task.model.tensors(), batch)
    for layer, rows in target_norms(task, task.model.tensors(), batch, memory=3 * size * columns).items():
        assert torch.allclose(rows, whole[layer], rtol=1e-5)


def test_the_parameters_count_not_the_model(task: Task, batch: Batch) -> None:
    moved = {name: tensor + 0.1 for name, tensor in task.model.tensors().items()}
    found = target_norms(task, moved, batch)["head"]
    assert not torch.allclose(found, target_norms(task, task.model.tensors(), batch)["head"], rtol=1e-3)
    task.model.load_state_dict(moved)
    assert torch.allclose(found, target_norms(task, task.model.tensors(), batch)["head"])


def test_a_layer_that_stays_home_has_no_row(task: Task, batch: Batch) -> None:
    whole = target_norms(task, task.model.tensors(), batch)
    private = dataclasses.replace(task, wire=lambda name: None if name.startswith("head") else name)
    found = target_norms(private, task.model.tensors(), batch)
    assert list(found) == ["body.0", "body.4"]
    for layer, rows in found.items():
        assert torch.allclose(rows, whole[layer])


def test_a_gradient_without_a_range_counts_as_zero() -> None:
    task = toy_task(loss_scale=0.0)
    for rows in target_norms(task, task.model.tensors(), toy_batch(3)).values():
        assert rows.tolist() == [[0, 0, 0]] * 3


def test_parameters_of_any_shape_have_their_norms() -> None:
    task = toy_task(scalars=True)
    found = target_norms(task, task.model.tensors(), toy_batch(3))
    assert list(found) == ["body.1", "body.3", "head"]
    assert all((rows > 0).all() for rows in found.values())


def test_the_model_is_left_as_it_was(task: Task, batch: Batch) -> None:
    before = {name: tensor.clone() for name, tensor in task.model.tensors().items()}
    target_norms(task, task.model.tensors(), batch)
    for name, parameter in task.model.named_parameters():
        assert torch.equal(parameter, before[name])
        assert parameter.grad is None
