"""VGG16 with group norm, for 32x32 images."""

from __future__ import annotations

from collections import OrderedDict
from typing import Annotated, Literal

from pydantic import Field
from torch import nn

from leaktight.models.layers import he, norm
from leaktight.models.network import Network

# For each stage: channels as a multiple of the width, how many convolutions, and whether a pooling follows.
_STAGES = ((1, 2, True), (2, 2, True), (4, 3, False), (8, 3, False), (8, 3, True))


class VGG16(Network):
    """Thirteen 3x3 convolutions with group norm and ReLU in five stages of 64 to 512 channels, linear 256 and the head.

    An image of 32x32 has 32, 16, 8, 8, 8 pixels a side in the five stages and ends as 512 channels of 4x4. Other sizes
    from 8x8 follow from the image. Plain SGD learns at the paper's rate of 0.01; 0.1 is too much for it.

    Args:
        width: channels of the first stage; the others keep their ratio to it. The paper's is 64.

    Example:
        >>> model = VGG16(width=4).build((3, 32, 32), classes=10, seed=0)
        >>> tuple(model.body.linear1.weight.shape), tuple(model.head.weight.shape)
        ((16, 512), (10, 16))

    Differs from the paper: Table 5 contradicts itself. Its 2x2 poolings after stages 3 and 4 are printed with an output
    of 8x8 for an input of 8x8, and 512 channels of 4x4 are 8192 features where the hidden layer is printed as 256 x
    4096 (AlexNet's). Here the printed output sizes and convolutions hold: those two poolings are left out and the
    hidden layer is 256 x 8192. The first convolution of a stage takes the channels of the stage before, where the table
    prints a square shape. The number of groups is not given: up to 32 groups of at least 4 channels. No dropout. Table
    3's `kaiming_uniform` is read as He's uniform draw for ReLU with biases at 0; the head keeps torch's own.

    References:
        Secret polarization network, Appendix C, Tables 3 and 5; Wu and He, Group Normalization, ECCV 2018.
    """

    kind: Literal["vgg16"] = "vgg16"
    width: Annotated[int, Field(ge=1)] = 64

    def parts(self, shape: tuple[int, ...], classes: int) -> tuple[nn.Module, nn.Module]:
        """Return the convolutions with one linear layer, and the linear head."""
        channels, height, width = self.image(shape, smallest=8)
        layers: OrderedDict[str, nn.Module] = OrderedDict()
        for stage, (multiple, depth, pooled) in enumerate(_STAGES, 1):
            for number in range(1, depth + 1):
                layers[f"conv{stage}_{number}"] = nn.Conv2d(channels, multiple * self.width, 3, padding=1)
                channels = multiple * self.width
                layers[f"norm{stage}_{number}"] = norm("group", channels)
                layers[f"relu{stage}_{number}"] = nn.ReLU()
            if pooled:
                layers[f"pool{stage}"] = nn.MaxPool2d(2)
                height, width = height // 2, width // 2
        layers["flatten"] = nn.Flatten()
        hidden = 4 * self.width
        layers["linear1"] = nn.Linear(channels * height * width, hidden)
        layers["relu6"] = nn.ReLU()
        body = nn.Sequential(layers)
        he(body, normal=False)
        return body, nn.Linear(hidden, classes)
