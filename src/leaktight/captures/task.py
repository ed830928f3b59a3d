"""A user's own module as a task whose messages carry the module's own names."""

from __future__ import annotations

import copy
import dataclasses

from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.dropout import _DropoutNd

from leaktight.core.task import Model, Normalise, Task
from leaktight.learning.task import classification
from leaktight.models.factory import wrap
from leaktight.models.head import find_head
from leaktight.models.trial import Failure, outputs_of, trial_inputs

Statistics = tuple[tuple[float, ...], tuple[float, ...]]


def task_of(
    module: nn.Module, shape: tuple[int, ...], classes: int, head: str = "", statistics: Statistics | None = None
) -> Task:
    """Return the classification task of a module that was not written as body and head.

    Tensors go out under the names of the module's own state dict, whatever the task's model calls them.

    Args:
        module: any module that ends in a linear layer; it is copied.
        shape: the shape of one example.
        classes: how many classes there are.
        head: the name of the last linear layer; empty to find it.
        statistics: mean and standard deviation of each channel, if the module expects inputs that were standardised
            outside it.

    Example:
        >>> task = task_of(nn.Sequential(nn.Flatten(), nn.Linear(4, 2)), (1, 2, 2), 2)
        >>> list(task.public_parameters())
        ['1.weight', '1.bias']
    """
    body, last = wrap(module, shape, classes, head or None)
    place = head or find_head(module, trial_inputs(module, shape)) or ""
    model = Model(body, last, Normalise(*statistics) if statistics else None)

    def wire(name: str) -> str | None:
        part, _, own = name.partition(".")
        return own if part == "body" else f"{place}.{own}".removeprefix(".")

    return dataclasses.replace(classification(model, shape, classes), wire=wire)


def mixing_layers(module: nn.Module) -> list[str]:
    """Name the batch norms of a module: in training mode they mix the examples of a batch."""
    return [name for name, layer in module.named_modules() if isinstance(layer, _BatchNorm)]


def random_layers(module: nn.Module) -> list[str]:
    """Name the dropout layers of a module: in training mode they make a gradient random."""
    return [name for name, layer in module.named_modules() if isinstance(layer, _DropoutNd) and layer.p > 0]


def runs(module: nn.Module, inputs: Tensor) -> bool:
    """Return whether a module runs on a batch, in the mode in which it is; it is not changed."""
    try:
        outputs_of(copy.deepcopy(module), inputs)
    except Failure:
        return False
    return True


def outputs_in(module: nn.Module, shape: tuple[int, ...]) -> int | None:
    """Return how many outputs a module has for an example; None if it does not run, or does not return a table.

    Example:
        >>> outputs_in(nn.Linear(4, 3), (4,))
        3
    """
    try:
        outputs = outputs_of(module, trial_inputs(module, shape))
    except Failure:
        # Whoever makes the task says why.
        return None
    return outputs.shape[1] if isinstance(outputs, Tensor) and outputs.dim() == 2 else None
