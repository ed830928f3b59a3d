"""Gradients of a task's loss, as the mean over a batch or one per example."""

from __future__ import annotations

import torch
from torch import Tensor

from leaktight.core.defence import Defence, Gradient
from leaktight.core.errors import Refusal
from leaktight.core.message import Tensors
from leaktight.core.task import Batch, Task


def gradient(task: Task, parameters: Tensors, batch: Batch, *, per_example: bool = False) -> Gradient:
    """Return the gradient of the mean loss, or of each example's loss, with respect to these parameters.

    Args:
        task: what is learned.
        parameters: every parameter of the task's model, by the model's own names.
        batch: the examples.
        per_example: whether to keep one gradient per example, along the first dimension.

    A sampled batch may be empty: its gradient is zero, and there is none per example.
    """
    if not len(batch):
        shapes = {
            name: (0, *tensor.shape) if per_example else tuple(tensor.shape) for name, tensor in parameters.items()
        }
        return Gradient(
            {name: tensor.new_zeros(shapes[name]) for name, tensor in parameters.items()}, per_example=per_example
        )
    if per_example:
        return _each(task, parameters, batch)
    leaves = {name: tensor.detach().requires_grad_(True) for name, tensor in parameters.items()}
    loss = task.loss(task.forward(leaves, batch.inputs), batch.labels).mean()
    gradients = torch.autograd.grad(loss, list(leaves.values()), allow_unused=True, materialize_grads=True)
    return Gradient(dict(zip(leaves, gradients, strict=True)), per_example=False)


def _each(task: Task, parameters: Tensors, batch: Batch) -> Gradient:
    def loss_of_one(tensors: dict[str, Tensor], inputs: Tensor, label: Tensor) -> Tensor:
        return task.loss(task.forward(tensors, inputs[None]), label[None]).sum()

    detached = {name: tensor.detach() for name, tensor in parameters.items()}
    each = torch.func.vmap(torch.func.grad(loss_of_one), in_dims=(None, 0, 0))(detached, batch.inputs, batch.labels)
    return Gradient(each, per_example=True)


def require_each_once(defence: Defence, raw: Batch, used: Batch) -> None:
    """Refuse a defence that bounds each example's gradient, where another one made several examples out of one.

    Each of them would be clipped by itself, so that the example behind them counts several times and nobody counts it
    so.

    Args:
        defence: what the participant does.
        raw: the examples of a step.
        used: what the defence made of them.
    """
    if defence.per_example and len(raw) != len(used):
        raise Refusal(
            f"{defence} must see each example once, to bound what it changes. Got {len(used)} examples made out of "
            f"{len(raw)}; leave the part out that makes more or fewer of them."
        )
