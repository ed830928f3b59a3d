"""Gradients of a task's loss, as the mean over a batch or one per example."""

from __future__ import annotations

import torch
from torch import Tensor

from leaktight.core.defence import Defence, Gradient
from leaktight.core.errors import Refusal
from leaktight.core.message import Tensors
from leaktight.core.task import Batch, Task


def gradient(
    task: Task,
    parameters: Tensors,
    batch: Batch,
    *,
    per_example: bool = False,
    masks: Tensors | None = None,
    running: Tensors | None = None,
) -> Gradient:
    """Return the gradient of the mean loss, or of each example's loss, with respect to these parameters.

    Args:
        task: what is learned.
        parameters: every parameter of the task's model, by the model's own names.
        batch: the examples.
        per_example: whether to keep one gradient per example, along the first dimension.
        masks: what dropout multiplies by, a row for each example; none for what it does on average.
        running: the running statistics before the step, by the model's own names; the result has those after it.

    Raises:
        Refusal: a gradient per example is asked for, and batch norm mixes the examples.

    A sampled batch may be empty: its gradient is zero, and there is none per example.
    """
    if not len(batch):
        shapes = {
            name: (0, *tensor.shape) if per_example else tuple(tensor.shape) for name, tensor in parameters.items()
        }
        return Gradient(
            {name: tensor.new_zeros(shapes[name]) for name, tensor in parameters.items()},
            per_example=per_example,
            running=dict(running or {}),
        )
    if per_example:
        return _each(task, parameters, batch, masks or {})
    leaves = {name: tensor.detach().requires_grad_(True) for name, tensor in parameters.items()}
    outputs, left = task.training_forward(leaves, batch.inputs, masks, running)
    loss = task.loss(outputs, batch.labels).mean()
    gradients = torch.autograd.grad(loss, list(leaves.values()), allow_unused=True, materialize_grads=True)
    return Gradient(
        dict(zip(leaves, gradients, strict=True)),
        per_example=False,
        running={name: tensor.detach() for name, tensor in left.running.items()},
        batch={name: tensor.detach() for name, tensor in left.batch.items()},
    )


def _each(task: Task, parameters: Tensors, batch: Batch, masks: Tensors) -> Gradient:
    _require_unmixed(task)

    def loss_of_one(tensors: dict[str, Tensor], inputs: Tensor, label: Tensor, own: dict[str, Tensor]) -> Tensor:
        kept = {name: mask[None] for name, mask in own.items()}
        return task.loss(task.training_forward(tensors, inputs[None], kept)[0], label[None]).sum()

    detached = {name: tensor.detach() for name, tensor in parameters.items()}
    each = torch.func.vmap(torch.func.grad(loss_of_one), in_dims=(None, 0, 0, 0))(
        detached, batch.inputs, batch.labels, dict(masks)
    )
    return Gradient(each, per_example=True)


def require_covered_buffers(defence: Defence, task: Task) -> None:
    """Refuse a defence that would let the running statistics of batch norm go out as they are.

    Args:
        defence: what a participant does.
        task: what it trains on.

    Raises:
        Refusal: it acts on gradients or the loss alone, or needs a gradient per example where there is none.
    """
    if defence.per_example:
        _require_unmixed(task)
    running = task.public_running()
    if running and not defence.covers_buffers:
        raise Refusal(
            f"{defence.kind} does not touch the running statistics of batch norm, such as `{next(iter(running))}`, "
            "that go out with every message. Set `--batch-norm eval`, or add a defence of messages, such as `withhold` "
            "for those layers."
        )


def _require_unmixed(task: Task) -> None:
    """Refuse a gradient per example where batch norm mixes the examples."""
    for name in task.model.batch_norms():
        raise Refusal(
            f"Batch norm `{name}` in training mode mixes the examples of a batch, so none has a gradient of its own. "
            "Set `--batch-norm eval`, or use group norm."
        )


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
