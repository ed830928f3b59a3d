"""AlexNet for 32x32 images."""

from __future__ import annotations

from collections import OrderedDict
from typing import Annotated, Literal

from pydantic import Field
from torch import nn

from leaktight.models.layers import he
from leaktight.models.network import Network

# Channels as multiples of the width, kernel size, and whether a pooling follows.
_LAYERS = ((1, 5, True), (3, 5, True), (6, 3, False), (4, 3, False), (4, 3, True))


class AlexNet(Network):
    """Five convolutions of 64, 192, 384, 256, 256 channels with ReLU, three poolings, linear 256, then the head.

    An image of 32x32 goes 32, 16, 8, 8, 8 and ends as 256 channels of 4x4, so the hidden linear layer is 256 x 4096.
    Other sizes from 8x8 follow from the image.

    Args:
        width: channels of the first convolution; the others keep their ratio to it. The paper's is 64.

    Example:
        >>> model = AlexNet().build((3, 32, 32), classes=10, seed=0)
        >>> tuple(model.body.linear1.weight.shape), tuple(model.head.weight.shape)
        ((256, 4096), (10, 256))

    Differs from the paper: None known for the layers of Table 4, all with bias and ReLU, which the table leaves out. No
    dropout (torchvision has it before the linear layers): it would make an example's gradient random. Table 3's
    `kaiming_uniform` is read as He's uniform draw for ReLU with biases at 0; the head keeps torch's own.

    References:
        Secret polarization network, Appendix C, Tables 3 and 4.
    """

    kind: Literal["alexnet"] = "alexnet"
    width: Annotated[int, Field(ge=1)] = 64

    def parts(self, shape: tuple[int, ...], classes: int) -> tuple[nn.Module, nn.Module]:
        """Return the convolutions with one linear layer, and the linear head."""
        channels, height, width = self.image(shape, smallest=8)
        layers: OrderedDict[str, nn.Module] = OrderedDict()
        for number, (multiple, kernel, pooled) in enumerate(_LAYERS, 1):
            layers[f"conv{number}"] = nn.Conv2d(channels, multiple * self.width, kernel, padding=kernel // 2)
            layers[f"relu{number}"] = nn.ReLU()
            channels = multiple * self.width
            if pooled:
                layers[f"pool{number}"] = nn.MaxPool2d(2)
                height, width = height // 2, width // 2
        layers["flatten"] = nn.Flatten()
        hidden = 4 * self.width
        layers["linear1"] = nn.Linear(channels * height * width, hidden)
        layers["relu6"] = nn.ReLU()
        body = nn.Sequential(layers)
        he(body, normal=False)
        return body, nn.Linear(hidden, classes)
