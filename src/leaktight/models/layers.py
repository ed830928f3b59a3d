"""What the networks are made of: activations, norms, and initial weights."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal, Self

from torch import nn

from leaktight.core.training_mode import BatchNorm

Activation = Literal["sigmoid", "tanh", "relu", "gelu"]
Norm = Literal["group", "instance", "batch", "running", "none"]

_ACTIVATIONS: dict[Activation, Callable[[], nn.Module]] = {
    "sigmoid": nn.Sigmoid,
    "tanh": nn.Tanh,
    "relu": nn.ReLU,
    "gelu": nn.GELU,
}


def activation(name: Activation) -> nn.Module:
    """Return the activation of this name, never in place: `sigmoid`, `tanh`, `relu` or `gelu`.

    Example:
        >>> activation("tanh")
        Tanh()
    """
    return _ACTIVATIONS[name]()


class FixedBatchNorm(nn.BatchNorm2d):
    """Batch norm that is always in evaluation mode, whatever mode its model is in.

    It normalises by its running statistics, (x - m) / sqrt(v + 1e-5) * weight + bias, and never by the batch's own: the
    gradient of a batch is then the mean of its examples' gradients, as every defence and attack here takes it to be.
    The statistics stay at m = 0 and v = 1 unless a state dictionary brings others, which makes a new layer one scale
    and one shift per channel.

    Example:
        >>> norm = FixedBatchNorm(3).train()
        >>> norm.training
        False
    """

    def __init__(self, channels: int) -> None:
        super().__init__(channels)
        self.eval()

    def train(self, mode: bool = True) -> Self:
        """Stay in evaluation mode."""
        return super().train(False)


def norm(name: Norm, channels: int) -> nn.Module:
    """Return a norm for this many channels; all but `running` treat each example by itself.

    Args:
        name: `group` for up to 32 groups of at least 4 channels each; `instance` for one group for each channel, with a
            scale and a shift; `batch` for batch norm in evaluation mode; `running` for batch norm in training mode,
            which normalises by the batch and whose running statistics go out along with every message; `none`.
        channels: how many channels come in.

    Example:
        >>> norm("group", 64).num_groups
        16
    """
    if name == "batch":
        return FixedBatchNorm(channels)
    if name == "running":
        return BatchNorm(nn.BatchNorm2d(channels))
    if name == "instance":
        return nn.GroupNorm(channels, channels)
    if name == "group":
        return nn.GroupNorm(math.gcd(channels, max(1, min(32, channels // 4))), channels)
    return nn.Identity()


def he(module: nn.Module, normal: bool = True) -> None:
    """Draw a module's own convolution and linear weights with variance 2 / fan-in (He et al.

    2015), and set biases to 0.
    """
    for layer in module.modules():
        if isinstance(layer, nn.Conv2d | nn.Linear):
            draw = nn.init.kaiming_normal_ if normal else nn.init.kaiming_uniform_
            draw(layer.weight, nonlinearity="relu")
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)


def uniform(module: nn.Module, bound: float) -> None:
    """Draw every parameter of a module, biases too, uniformly between -bound and bound."""
    for parameter in module.parameters():
        nn.init.uniform_(parameter, -bound, bound)
