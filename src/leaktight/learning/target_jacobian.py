"""Target Jacobian: how each layer's gradient changes with the target, one forward-mode column for each class."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable

import torch
import torch.nn.functional as F
from torch import Tensor

from leaktight.core.message import Tensors
from leaktight.core.task import Batch, Task
from leaktight.learning.bounded_norm import bounded_norms, join_totals, spans, totals

BYTES = 256 * 2**20
"""About how much memory gradients in work may take."""

TOGETHER = 4
"""Examples in work at once, at most: a network of few parameters may still have large activations."""

Columns = Callable[[Tensor, Tensor, Tensor], tuple[dict[str, Tensor], dict[str, Tensor]]]


def target_norms(task: Task, parameters: Tensors, batch: Batch, memory: int = BYTES) -> dict[str, Tensor]:
    r"""Return the bounded Jacobian norms of each layer, a row for each example and a column for each of `NORMS`.

    With \(g_l(y)\) the N entries (weights and biases) of layer l's gradient of one example's loss under target y, a
    probability for each class, and \(J_l = \partial g_l / \partial y\) at the one-hot label,

    .. math:: \frac{1}{\psi} \left\| \frac{J_l}{\max g_l - \min g_l} \right\|_p, \qquad
        \psi = \sqrt{N}, N, 1 \text{ for } p = F, 1, \infty,

    0 where \(g_l\) has no range. Column c of \(J_l\) is the derivative of the gradient in the direction of class c, so
    that one forward-mode pass gives a column of all layers; as many columns are made at once as fit, and only their
    norms are kept.

    Args:
        task: a task whose loss takes probabilities as labels.
        parameters: every parameter, by the model's names.
        batch: the examples, with the labels that are the points.
        memory: about how many bytes columns may take at once; at least one column is made.

    Example:
        >>> from leaktight.testing import toy_batch, toy_task
        >>> task = toy_task()
        >>> {layer: tuple(rows.shape) for layer, rows in target_norms(task, task.model.tensors(), toy_batch(5)).items()}
        {'body.1': (5, 3), 'head': (5, 3)}
    """
    names = task.layers()
    shared = [name for own in names.values() for name in own]
    dtype = parameters[shared[0]].dtype
    columns = _columns(loss_gradient(task, parameters, shared))
    # Of each column there is the gradient, its change, and what they are made from.
    fit = memory // (3 * dtype.itemsize * sum(parameters[name].numel() for name in shared))
    examples, classes = min(TOGETHER, max(1, fit // task.classes)), min(task.classes, max(1, fit))
    targets = F.one_hot(batch.labels, task.classes).to(dtype)
    directions = torch.split(torch.eye(task.classes, dtype=dtype, device=targets.device), classes)
    rows: dict[str, list[Tensor]] = {layer: [] for layer in names}
    for inputs, points in zip(torch.split(batch.inputs, examples), torch.split(targets, examples), strict=True):
        measures = [_measure(names, *columns(inputs, points, some)) for some in directions]
        for layer, own in names.items():
            entries = sum(parameters[name].numel() for name in own)
            total = join_totals(measured[layer][0] for measured in measures)
            rows[layer].append(bounded_norms(total, measures[0][layer][1], entries))
    return {layer: torch.cat(parts) for layer, parts in rows.items()}


def loss_gradient(
    task: Task, parameters: Tensors, names: Iterable[str]
) -> Callable[[Tensor, Tensor], dict[str, Tensor]]:
    """Return the function from one example's inputs and target to the gradient of its loss in named parameters."""
    own = {name: parameters[name].detach() for name in names}
    rest = {name: tensor.detach() for name, tensor in parameters.items() if name not in own}

    def gradient(inputs: Tensor, target: Tensor) -> dict[str, Tensor]:
        def loss(chosen: dict[str, Tensor]) -> Tensor:
            return task.loss(task.forward({**rest, **chosen}, inputs[None]), target[None]).sum()

        gradients: dict[str, Tensor] = torch.func.grad(loss)(own)
        return gradients

    return gradient


def _columns(gradient: Callable[[Tensor, Tensor], dict[str, Tensor]]) -> Columns:
    """Return the function from examples, targets and directions to gradients and columns.

    Both are by example and then by direction.
    """

    def column(inputs: Tensor, target: Tensor, direction: Tensor) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        derivative = torch.func.jvp(lambda at: gradient(inputs, at), (target,), (direction,))
        return derivative[0], derivative[1]

    every = torch.func.vmap(torch.func.vmap(column, in_dims=(None, None, 0)), in_dims=(0, 0, None))

    def quiet(inputs: Tensor, targets: Tensor, directions: Tensor) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        # Forward mode starts by compiling rules with what torch itself says is out of date.
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*torch.jit.* is deprecated", category=DeprecationWarning)
            gradients, columns = every(inputs, targets, directions)
        return gradients, columns

    return quiet


def _measure(
    names: dict[str, tuple[str, ...]], gradients: dict[str, Tensor], columns: dict[str, Tensor]
) -> dict[str, tuple[Tensor, Tensor]]:
    """Return the totals of each layer's columns and the range of its gradient, which is the same in all directions."""
    return {
        layer: (totals(columns[name] for name in own), spans(gradients[name][:, 0] for name in own))
        for layer, own in names.items()
    }
