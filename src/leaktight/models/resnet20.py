"""ResNet20: the small residual network for 32x32 images."""

from __future__ import annotations

from collections import OrderedDict
from typing import Annotated, Literal

import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from leaktight.models.layers import Activation, Norm, activation, he, norm
from leaktight.models.network import Network

_STAGES = (16, 32, 64)
_BLOCKS = 3


class Block(nn.Module):
    """Two 3x3 convolutions around a shortcut without parameters (option A): every other pixel, new channels zero.

    Args:
        channels: how many come in.
        wanted: how many go out.
        stride: of the first convolution.
        kind: the norm after each convolution.
        end: the activation of the sum.
    """

    def __init__(self, channels: int, wanted: int, stride: int, kind: Norm, end: Activation = "relu") -> None:
        super().__init__()
        biased = kind == "none"
        self.conv1 = nn.Conv2d(channels, wanted, 3, stride=stride, padding=1, bias=biased)
        self.norm1 = norm(kind, wanted)
        self.conv2 = nn.Conv2d(wanted, wanted, 3, padding=1, bias=biased)
        self.norm2 = norm(kind, wanted)
        self.stride, self.added = stride, wanted - channels
        self.end = activation(end)

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the activation of shortcut + convolutions."""
        hidden = self.norm2(self.conv2(F.relu(self.norm1(self.conv1(inputs)))))
        shortcut = inputs[..., :: self.stride, :: self.stride]
        before = self.added // 2
        outputs: Tensor = self.end(hidden + F.pad(shortcut, (0, 0, 0, 0, before, self.added - before)))
        return outputs


class ResNet20(Network):
    """A 3x3 convolution, three stages of three residual blocks (16, 32, 64 channels), global average, linear head.

    With width 1 and 10 classes it has 269,722 parameters. Shortcuts are option A of the paper: no parameters, so every
    parameter that is shared lies on the path of a convolution. Any image size fits; 32x32 ends in 8x8 before the
    average.

    Args:
        width: multiplies the channels of all stages; 4 is the wide form of the inversion studies.
        norm: `group` (default), `batch` for batch norm in evaluation mode, `running` for batch norm in training mode
            with running statistics, or `none`. The papers attack with batch norm in evaluation mode. From its starting
            statistics that is nearly no norm at all: on digits of 32x32, plain SGD at a rate of 0.1 learns with `group`
            (86 % after six epochs) and diverges with `batch` and `none`.

    Example:
        >>> model = ResNet20().build((3, 32, 32), classes=10, seed=0)
        >>> sum(parameter.numel() for parameter in model.parameters())
        269722

    Differs from the paper: Group norm by default; `norm="running"` is the layer of the source, `norm="batch"` the same
    always in evaluation mode and without the running statistics that its training would have left. With `none`,
    convolutions have a bias.

    References:
        He, Zhang, Ren and Sun, Deep Residual Learning for Image Recognition, CVPR 2016, Section 4.2.
    """

    kind: Literal["resnet20"] = "resnet20"
    width: Annotated[int, Field(ge=1)] = 1
    norm: Norm = "group"

    def parts(self, shape: tuple[int, ...], classes: int) -> tuple[nn.Module, nn.Module]:
        """Return everything up to the global average, and the linear head."""
        channels, _, _ = self.image(shape, smallest=4)
        wide = _STAGES[0] * self.width
        layers: OrderedDict[str, nn.Module] = OrderedDict()
        layers["conv1"] = nn.Conv2d(channels, wide, 3, padding=1, bias=self.norm == "none")
        layers["norm1"] = norm(self.norm, wide)
        layers["relu1"] = nn.ReLU()
        for stage, base in enumerate(_STAGES, 1):
            for block in range(1, _BLOCKS + 1):
                stride = 2 if stage > 1 and block == 1 else 1
                layers[f"stage{stage}block{block}"] = Block(wide, base * self.width, stride, self.norm)
                wide = base * self.width
        layers["average"] = nn.AdaptiveAvgPool2d(1)
        layers["flatten"] = nn.Flatten()
        body = nn.Sequential(layers)
        he(body)
        return body, nn.Linear(wide, classes)
