"""LeNet-5: two convolutions and two hidden linear layers."""

from __future__ import annotations

from collections import OrderedDict
from typing import Annotated, Literal

from pydantic import Field
from torch import nn

from leaktight.models.layers import Activation, Norm, activation, norm
from leaktight.models.network import Network

Units = Annotated[int, Field(ge=1)]


class LeNet(Network):
    """Convolution 6 of 5x5, pool 2, convolution 16 of 5x5, pool 2, linear 120, linear 84, then the head.

    Images smaller than 32x32 are padded by 2 on each side first, so that 28x28 and 32x32 both reach the last pooling as
    16 channels of 5x5. Grey and colour images of any size from 12x12 fit; the first linear layer follows from the
    image.

    Args:
        activation: after each convolution and hidden linear layer.
        norm: of the convolutions, before their activation: `none` (default), `group`, `instance`, or `batch` for batch
            norm in evaluation mode.
        channels: of the two convolutions.
        linear: units of the two hidden linear layers.

    Example:
        >>> model = LeNet().build((1, 28, 28), classes=10, seed=0)
        >>> model.body.linear1
        Linear(in_features=400, out_features=120, bias=True)
        >>> sum(parameter.numel() for parameter in model.parameters())
        61706

    Differs from the paper: Average pooling has no trained scale, the activation is a plain tanh, the second convolution
    is connected to all channels, and the output is a linear layer for cross-entropy in place of radial basis functions.

    References:
        LeCun, Bottou, Bengio and Haffner, Gradient-based learning applied to document recognition, 1998, Figure 2.
    """

    kind: Literal["lenet"] = "lenet"
    activation: Activation = "tanh"
    # Left out where they are the paper's, so that settings of before they were there keep their keys.
    norm: Norm = Field("none", exclude_if=lambda name: name == "none")
    channels: tuple[Units, Units] = Field((6, 16), exclude_if=lambda channels: channels == (6, 16))
    linear: tuple[Units, Units] = Field((120, 84), exclude_if=lambda units: units == (120, 84))

    def parts(self, shape: tuple[int, ...], classes: int) -> tuple[nn.Module, nn.Module]:
        """Return the two convolutions with two linear layers, and the linear head."""
        channels, height, width = self.image(shape, smallest=12)
        padding = 2 if min(height, width) < 32 else 0
        height, width = (((size + 2 * padding - 4) // 2 - 4) // 2 for size in (height, width))
        few, more = self.channels
        layers: OrderedDict[str, nn.Module] = OrderedDict()
        layers["conv1"] = nn.Conv2d(channels, few, 5, padding=padding)
        if self.norm != "none":
            layers["norm1"] = norm(self.norm, few)
        layers[f"{self.activation}1"] = activation(self.activation)
        layers["pool1"] = nn.AvgPool2d(2)
        layers["conv2"] = nn.Conv2d(few, more, 5)
        if self.norm != "none":
            layers["norm2"] = norm(self.norm, more)
        layers[f"{self.activation}2"] = activation(self.activation)
        layers["pool2"] = nn.AvgPool2d(2)
        layers["flatten"] = nn.Flatten()
        first, last = self.linear
        layers["linear1"] = nn.Linear(more * height * width, first)
        layers[f"{self.activation}3"] = activation(self.activation)
        layers["linear2"] = nn.Linear(first, last)
        layers[f"{self.activation}4"] = activation(self.activation)
        return nn.Sequential(layers), nn.Linear(last, classes)
