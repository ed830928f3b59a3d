"""ConvNet: eight convolutions, the network of the inversion studies between DLNet and ResNet."""

from __future__ import annotations

from collections import OrderedDict
from typing import Annotated, Literal

from pydantic import Field
from torch import nn

from leaktight.models.layers import Norm, he, norm
from leaktight.models.network import Network

_MULTIPLES = (1, 2, 2, 4, 4, 4, 4, 4)
_POOLED = (6, 8)


class ConvNet(Network):
    """Eight 3x3 convolutions with norm and ReLU, of w to 4w channels, with two poolings, then the head.

    The channels are w, 2w, 2w, 4w, 4w, 4w, then pool 3, then 4w, 4w, then pool 3.

    An image of 32x32 becomes 10x10 and then 3x3, so the head is linear 36w -> classes; other sizes from 9x9 follow from
    the image.

    Args:
        width: w, channels of the first convolution. The papers use 64; 16 is for a processor without a graphics card.
        norm: `group` (default), `batch` for batch norm in evaluation mode, `running` for batch norm in training mode
            with running statistics, or `none`. The papers attack with batch norm in evaluation mode. From its starting
            statistics that is nearly no norm at all: on digits of 32x32, plain SGD at a rate of 0.1 learns with `group`
            (92 % after six epochs at width 8) and fails with `batch` and `none`, which need 0.01.
        initial: `he` scales weights for ReLU; `default` is torch's own, under which outputs hardly depend on the image
            unless `norm` is `group`, and which then does not train.

    Example:
        >>> model = ConvNet(width=16).build((3, 32, 32), classes=10, seed=0)
        >>> model.head
        Linear(in_features=576, out_features=10, bias=True)

    Differs from the paper: Group norm and He's initial weights by default, width 16; `ConvNet(width=64, norm="running",
    initial="default")` is the source's network.

    References:
        Geiping, Bauermeister, Dröge and Moeller, Inverting Gradients, NeurIPS 2020, Section 5 and its public code; Gao
        et al., Privacy-preserving Collaborative Learning with Automatic Transformation Search, CVPR 2021.
    """

    kind: Literal["convnet"] = "convnet"
    width: Annotated[int, Field(ge=1)] = 16
    norm: Norm = "group"
    initial: Literal["he", "default"] = "he"

    def parts(self, shape: tuple[int, ...], classes: int) -> tuple[nn.Module, nn.Module]:
        """Return the eight convolutions and the linear head."""
        channels, height, width = self.image(shape, smallest=9)
        layers: OrderedDict[str, nn.Module] = OrderedDict()
        for number, multiple in enumerate(_MULTIPLES, 1):
            layers[f"conv{number}"] = nn.Conv2d(channels, multiple * self.width, 3, padding=1)
            channels = multiple * self.width
            layers[f"norm{number}"] = norm(self.norm, channels)
            layers[f"relu{number}"] = nn.ReLU()
            if number in _POOLED:
                layers[f"pool{number}"] = nn.MaxPool2d(3)
                height, width = height // 3, width // 3
        layers["flatten"] = nn.Flatten()
        body = nn.Sequential(layers)
        if self.initial == "he":
            he(body)
        return body, nn.Linear(channels * height * width, classes)
