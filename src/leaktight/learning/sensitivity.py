"""Sensitivity: how much each layer's gradient changes with what an example is taken for."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from leaktight.core.message import Tensors, layer_of
from leaktight.core.task import Batch, Task

ENTRIES = 1 << 24
"""How many numbers the Jacobians of the examples that are differentiated at once may have together."""


def target_jacobians(
    task: Task, parameters: Tensors, inputs: Tensor, target: Tensor
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    r"""Return one example's gradient by layer, and how it changes with the example's target.

    .. math:: g_l(y) = \frac{\partial \ell(y, \theta)}{\partial \theta_l}, \qquad J_l(y) = \frac{\partial g_l(y)}{\partial y}

    As \(\partial g_l / \partial y_c\) is the gradient of \(\partial \ell / \partial y_c\) by \(\theta_l\), one backward pass for each class finds it.

    Args:
        task: what is learned; its loss takes a probability for each class.
        parameters: every parameter of the task's model, by the model's own names.
        inputs: one example's inputs.
        target: \(y\), a probability for each class.

    Returns:
        By layer, among those that go out: the gradient \((n_l)\), and the Jacobian (classes, \(n_l\)), one row for each class.

    Example:
        >>> from leaktight.learning.task import classification
        >>> from leaktight.models import MLP
        >>> model = MLP(hidden=(2,)).build((4,), classes=3, seed=0)
        >>> task = classification(model, (4,), 3)
        >>> gradient, jacobian = target_jacobians(task, model.tensors(), torch.ones(4), torch.tensor([0.0, 1.0, 0.0]))
        >>> {layer: tuple(rows.shape) for layer, rows in jacobian.items()}
        {'body.linear1': (3, 10), 'head': (3, 9)}

    References: Mo et al. 2021, Eq. 9.
    """
    fixed = {name: tensor.detach() for name, tensor in parameters.items()}

    def loss(tensors: dict[str, Tensor], towards: Tensor) -> Tensor:
        return task.loss(task.forward(tensors, inputs[None]), towards[None]).sum()

    def slopes(tensors: dict[str, Tensor]) -> Tensor:
        found: Tensor = torch.func.grad(loss, argnums=1)(tensors, target)
        return found

    gradient = torch.func.grad(loss)(fixed, target)
    rows = torch.func.jacrev(slopes)(fixed)
    return _by_layer(task.outward(gradient), 0), _by_layer(task.outward(rows), 1)


def layer_sensitivity(task: Task, parameters: Tensors, batch: Batch) -> dict[str, float]:
    r"""Return how sensitive the gradient of each layer is to the true outputs, averaged over examples.

    .. math:: \frac{1}{K \sqrt{n_l}} \sum_{k=1}^K \frac{\lVert J_l(y_k) \rVert_F}{\max g_l(y_k) - \min g_l(y_k)}

    with \(y_k\) the one-hot label of example k and \(n_l\) the number of entries of layer l. Nothing private has a part in it if parameters
    and examples are public.

    Args:
        task: what is learned.
        parameters: every parameter of the task's model, by the model's own names.
        batch: K examples.

    Returns:
        By layer, in the order of the model, of those that go out.

    Example:
        >>> from leaktight.learning.task import classification
        >>> from leaktight.models import MLP
        >>> model = MLP(hidden=(2,)).build((4,), classes=3, seed=0)
        >>> batch = Batch(torch.ones(1, 4), torch.tensor([1]))
        >>> list(layer_sensitivity(classification(model, (4,), 3), model.tensors(), batch))
        ['body.linear1', 'head']

    Differs from the paper: weights and biases of a layer are taken together, where the paper counts the weights' \(N_l N_{l-1}\) entries.
    An example whose gradient at a layer has no range, because its units are off or the layer has one entry, adds nothing.

    References: Mo et al., Layer-wise Characterization of Latent Information Leakage in Federated Learning, 2021, Eq. 10 with p = F.
    """

    def of_one(inputs: Tensor, target: Tensor) -> dict[str, Tensor]:
        gradient, jacobian = target_jacobians(task, parameters, inputs, target)
        return {layer: _bounded_norm(gradient[layer], rows) for layer, rows in jacobian.items()}

    targets = F.one_hot(batch.labels, task.classes).to(next(iter(parameters.values())).dtype)
    each = task.classes * sum(tensor.numel() for tensor in parameters.values())
    found = torch.func.vmap(of_one, chunk_size=max(1, ENTRIES // each))(batch.inputs, targets)
    return {layer: norms.mean().item() for layer, norms in found.items()}


def _by_layer(tensors: Tensors, kept: int) -> dict[str, Tensor]:
    """Return the entries of each layer in one row, after so many leading dimensions that are kept."""
    rows: dict[str, list[Tensor]] = {}
    for name, tensor in tensors.items():
        rows.setdefault(layer_of(name), []).append(tensor.reshape(*tensor.shape[:kept], -1))
    return {layer: torch.cat(parts, dim=-1) for layer, parts in rows.items()}


def _bounded_norm(gradient: Tensor, jacobian: Tensor) -> Tensor:
    """Return the Frobenius norm over the gradient's range, normalised by the layer's size."""
    span = gradient.amax() - gradient.amin()
    size: Tensor = torch.linalg.vector_norm(jacobian)
    # A range that is not a number must not pass for none.
    return torch.where(span == 0, 0, size / torch.where(span == 0, 1, span)) / math.sqrt(len(gradient))
