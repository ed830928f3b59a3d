"""MLP: linear layers for examples of any shape."""

from __future__ import annotations

import math
from collections import OrderedDict
from typing import Annotated, Literal

from pydantic import Field
from torch import nn

from leaktight.models.layers import Activation, activation
from leaktight.models.network import Network


class MLP(Network):
    """Flatten, then for each hidden width a linear layer with bias and an activation, then the linear head.

    Takes tables and images alike. Its first layer gives a batch of one away exactly, for any loss: row i of that
    layer's weight gradient is the input times entry i of its bias gradient. Every audit is checked by that known
    answer. Behind a ReLU small batches follow by algebra too (`attacks.Analytic`).

    Args:
        hidden: the width of each hidden layer; none at all makes a linear classifier.
        activation: after each hidden layer.

    Example:
        >>> model = MLP(hidden=(64, 32)).build((1, 8, 8), classes=10, seed=0)
        >>> [tuple(parameter.shape) for name, parameter in model.named_parameters() if name.endswith("weight")]
        [(64, 64), (32, 64), (10, 32)]
    """

    kind: Literal["mlp"] = "mlp"
    hidden: tuple[Annotated[int, Field(ge=1)], ...] = (128,)
    activation: Activation = "relu"

    def parts(self, shape: tuple[int, ...], classes: int) -> tuple[nn.Module, nn.Module]:
        """Return the hidden layers and the linear head."""
        width = math.prod(shape)
        layers: OrderedDict[str, nn.Module] = OrderedDict(flatten=nn.Flatten())
        for number, wanted in enumerate(self.hidden, 1):
            layers[f"linear{number}"] = nn.Linear(width, wanted)
            layers[f"{self.activation}{number}"] = activation(self.activation)
            width = wanted
        return nn.Sequential(layers), nn.Linear(width, classes)
