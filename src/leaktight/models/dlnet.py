"""DLNet: the small smooth network that gradient inversion was first shown on."""

from __future__ import annotations

from collections import OrderedDict
from typing import Annotated, Literal

from pydantic import Field
from torch import nn

from leaktight.models.layers import Activation, activation, uniform
from leaktight.models.network import Network

_STRIDES = (2, 2, 1, 1)


class DLNet(Network):
    """Four 5x5 convolutions of 12 channels with strides 2, 2, 1, 1 and smooth activations, then one linear layer.

    For a colour image of 32x32 the head is linear 768 -> classes (12 channels of 8x8); for any other size and number of
    channels it follows from the image. Every layer has a bias. The activation is smooth on purpose: an attack
    differentiates twice.

    Args:
        activation: `sigmoid`, or `tanh` where sigmoid does not train (the paper's SVHN).
        initial: `uniform` draws all weights and biases from uniform(-bound, bound); `default` is torch's own, under
            which activations shrink from layer to layer and inversion is harder.
        bound: half the width of the uniform draw, above 0.
        width: channels of each convolution.

    Example:
        >>> model = DLNet().build((3, 32, 32), classes=10, seed=0)
        >>> model.head
        Linear(in_features=768, out_features=10, bias=True)
        >>> sum(parameter.numel() for parameter in model.parameters())
        19438

    Differs from the paper: None known for Table 6. Table 2 gives the bound 0.3; the public code of the network's
    authors uses 0.5; set `bound` for either. Whether biases are drawn too is not said; they are, as in that code.

    References:
        Secret polarization network, Appendix C, Tables 2 and 6; Zhu, Liu and Han, Deep Leakage from Gradients, NeurIPS
        2019.
    """

    kind: Literal["dlnet"] = "dlnet"
    activation: Activation = "sigmoid"
    initial: Literal["uniform", "default"] = "uniform"
    bound: Annotated[float, Field(gt=0)] = 0.3
    width: Annotated[int, Field(ge=1)] = 12

    def parts(self, shape: tuple[int, ...], classes: int) -> tuple[nn.Module, nn.Module]:
        """Return the four convolutions and the linear head."""
        channels, height, width = self.image(shape, smallest=1)
        layers: OrderedDict[str, nn.Module] = OrderedDict()
        for number, stride in enumerate(_STRIDES, 1):
            layers[f"conv{number}"] = nn.Conv2d(channels, self.width, 5, stride=stride, padding=2)
            layers[f"{self.activation}{number}"] = activation(self.activation)
            channels, height, width = self.width, -(-height // stride), -(-width // stride)
        layers["flatten"] = nn.Flatten()
        body, head = nn.Sequential(layers), nn.Linear(channels * height * width, classes)
        if self.initial == "uniform":
            uniform(body, self.bound)
            uniform(head, self.bound)
        return body, head
