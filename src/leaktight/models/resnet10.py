"""ResNet10: the smallest residual network of four stages, with one block each."""

from __future__ import annotations

from collections import OrderedDict
from typing import Annotated, Literal

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from leaktight.models.layers import Activation, Norm, he, norm
from leaktight.models.network import Network
from leaktight.models.resnet20 import Block

_STAGES = (1, 2, 4, 8)


class CosineHead(nn.Module):
    """Scores that are cosines between weights and features, times a fixed factor.

    Args:
        features: how many come in.
        classes: how many scores go out.
        factor: what cosines are multiplied by.
    """

    def __init__(self, features: int, classes: int, factor: float) -> None:
        super().__init__()
        self.in_features, self.factor = features, factor
        self.weight = nn.Parameter(nn.init.normal_(torch.empty(classes, features)))

    def forward(self, features: Tensor) -> Tensor:
        """Return the factor times the cosine of each example with each class."""
        return self.factor * F.linear(F.normalize(features, dim=1), F.normalize(self.weight, dim=1))


class ResNet10(Network):
    """A 3x3 convolution, four residual blocks of w, 2w, 4w and 8w channels, global average, head.

    All but the first block halve the sides. An image of 32x32 ends in 4x4 before the average.

    Args:
        width: w; 64 is the network's own, 16 is for a processor without a graphics card.
        norm: `group` (default), `instance`, `batch` for batch norm in evaluation mode, or `none`.
        end: the activation of the last block: `tanh` gives features of both signs, where cosines are to be computed.
        head: `linear`, or `cosine` for scores that are cosines of weights and features.
        factor: what cosines are multiplied by, above 0: the inverse of a softmax's temperature.

    Example:
        >>> model = ResNet10(width=16, end="tanh", head="cosine").build((3, 32, 32), classes=10, seed=0)
        >>> sum(parameter.numel() for parameter in model.parameters())
        297616

    Differs from the paper: It is the network of ImageNet with one block in each stage and the first layers that are
    usual for small images; the shortcuts have no parameters. Group norm by default. For cosines, Sariyildiz et al. say
    neither the factor nor whether there is one: 10 here.

    References:
        He, Zhang, Ren and Sun, Deep Residual Learning for Image Recognition, CVPR 2016; Sariyildiz, Cinbis and Ayday,
        Key Protected Classification for Collaborative Learning, 2020, section 5.5.
    """

    kind: Literal["resnet10"] = "resnet10"
    width: Annotated[int, Field(ge=1)] = 64
    norm: Norm = "group"
    end: Activation = "relu"
    head: Literal["linear", "cosine"] = "linear"
    factor: Annotated[float, Field(gt=0)] = 10.0

    def parts(self, shape: tuple[int, ...], classes: int) -> tuple[nn.Module, nn.Module]:
        """Return everything up to the global average, and the head."""
        channels, _, _ = self.image(shape, smallest=8)
        wide = self.width
        layers: OrderedDict[str, nn.Module] = OrderedDict()
        layers["conv1"] = nn.Conv2d(channels, wide, 3, padding=1, bias=self.norm == "none")
        layers["norm1"] = norm(self.norm, wide)
        layers["relu1"] = nn.ReLU()
        for stage, multiple in enumerate(_STAGES, 1):
            end = self.end if stage == len(_STAGES) else "relu"
            layers[f"block{stage}"] = Block(wide, multiple * self.width, 1 if stage == 1 else 2, self.norm, end)
            wide = multiple * self.width
        layers["average"] = nn.AdaptiveAvgPool2d(1)
        layers["flatten"] = nn.Flatten()
        body = nn.Sequential(layers)
        he(body)
        head = CosineHead(wide, classes, self.factor) if self.head == "cosine" else nn.Linear(wide, classes)
        return body, head
