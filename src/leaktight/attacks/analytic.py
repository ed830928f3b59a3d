"""Analytic recovery: the input of a linear layer with bias is the ratio of its weight's and its bias's gradients."""

from __future__ import annotations

import math
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

from leaktight.core.attack import Attack, Principle, Reconstruction
from leaktight.core.errors import Refusal
from leaktight.core.random import Stream
from leaktight.core.task import Normalise, Task
from leaktight.core.threat import View


class Analytic(Attack):
    """Read the examples off the first linear layer, without any search.

    For z = W x + b and any loss, dL/dW_i = dL/db_i x. So each row i with dL/db_i != 0 gives x = dL/dW_i / dL/db_i: exact for one
    example, under any loss. For more examples a row gives a weighted mean of them, and is exact where only one example
    activates the unit; the rows with the largest bias gradients are answered, as many as there are examples.

    What it needs: a model whose body begins with a linear layer (after flattening), and that layer's gradient.

    Example:
        >>> Analytic().simple
        True

    Differs from the paper: none known.

    References: Aono et al. 2017, Eq. 4; Geiping et al. 2020, Proposition 3.1.
    """

    kind: Literal["analytic"] = "analytic"
    claims: ClassVar[frozenset[str]] = frozenset({"inputs"})
    principle: ClassVar[Principle] = "algebra"
    simple: ClassVar[bool] = True

    def run(self, view: View, rng: Stream) -> Reconstruction:
        """Answer every gradient and update in view."""
        layer = _first_linear(view.task)
        weight, bias = view.task.wire(f"{layer}.weight"), view.task.wire(f"{layer}.bias")
        exchanges = view.exchanges()
        if not exchanges or any(not {weight, bias} <= exchange.sent.tensors.keys() for exchange in exchanges):
            raise Refusal(f"The analytic attack needs the gradients of `{layer}` in every message. Not all of them are shared.")
        sent = [(exchange.sent.tensors, int(exchange.sent.facts["examples"])) for exchange in exchanges]
        inputs = tuple(_ratio(view.task, tensors[str(weight)], tensors[str(bias)], count) for tensors, count in sent)
        return Reconstruction(tuple(exchange.sent.key for exchange in exchanges), inputs)


def _first_linear(task: Task) -> str:
    """Return the name of the layer that sees the flattened inputs."""
    name: str
    for name, module in task.model.named_modules():
        if not isinstance(module, nn.Linear | nn.Conv2d | nn.Conv1d):
            continue
        if isinstance(module, nn.Linear) and module.bias is not None and module.in_features == math.prod(task.shape):
            return name
        break
    raise Refusal("The analytic attack needs a model that begins with a linear layer with bias. Use gradient matching instead.")


def _ratio(task: Task, weight: Tensor, bias: Tensor, examples: int) -> Tensor:
    rows = bias.abs().argsort(descending=True)[:examples]
    rows = rows.repeat(-(-examples // len(rows)))[:examples]
    slopes = bias[rows, None]
    seen = torch.where(slopes == 0, 0.0, weight[rows] / torch.where(slopes == 0, 1.0, slopes)).view(-1, *task.shape)
    if not isinstance(task.model.normalise, Normalise):
        return seen
    shift, scale = task.model.normalise.units(len(task.shape))
    return seen * scale + shift
