"""DLNet with more convolutions, to see from which layer's gradient an image is recovered."""

from __future__ import annotations

from collections import OrderedDict
from typing import Annotated, Literal

from pydantic import Field
from torch import nn

from leaktight.models.layers import activation, uniform
from leaktight.models.network import Network

_HALVED = 2


class DeepDLNet(Network):
    """Seven 5x5 convolutions of 12 channels with sigmoid, the first two with stride 2, then one linear layer.

    That makes eight layers with weights. For a colour image of 32x32 the head is linear 768 -> classes (12 channels of
    8x8). Every layer has a bias.

    Args:
        depth: how many convolutions, at least 2. The paper's are 7.
        width: channels of each. The paper's are 12.
        bound: all weights and biases are drawn from uniform(-bound, bound), above 0; the smaller, the less of an image
            reaches late layers.

    Example:
        >>> model = DeepDLNet().build((3, 32, 32), classes=100, seed=0)
        >>> model.head
        Linear(in_features=768, out_features=100, bias=True)
        >>> sum(name.endswith("weight") for name, _ in model.named_parameters())
        8

    Differs from the paper: strides, activation function and initial weights are not given. They are those of DLNet,
    which its attack was published on, and which has the same 768 inputs of the head; that code draws from uniform(-0.5,
    0.5).

    References:
        Mo et al., Layer-wise Characterization of Latent Information Leakage in Federated Learning, 2021, section 9.2;
        Zhu, Liu and Han, Deep Leakage from Gradients, NeurIPS 2019.
    """

    kind: Literal["deep_dlnet"] = "deep_dlnet"
    depth: Annotated[int, Field(ge=_HALVED)] = 7
    width: Annotated[int, Field(ge=1)] = 12
    bound: Annotated[float, Field(gt=0)] = 0.3

    def parts(self, shape: tuple[int, ...], classes: int) -> tuple[nn.Module, nn.Module]:
        """Return the convolutions and the linear head."""
        channels, height, width = self.image(shape, smallest=1)
        layers: OrderedDict[str, nn.Module] = OrderedDict()
        for number in range(1, self.depth + 1):
            stride = 2 if number <= _HALVED else 1
            layers[f"conv{number}"] = nn.Conv2d(channels, self.width, 5, stride=stride, padding=2)
            layers[f"sigmoid{number}"] = activation("sigmoid")
            channels, height, width = self.width, -(-height // stride), -(-width // stride)
        layers["flatten"] = nn.Flatten()
        body, head = nn.Sequential(layers), nn.Linear(channels * height * width, classes)
        uniform(body, self.bound)
        uniform(head, self.bound)
        return body, head
