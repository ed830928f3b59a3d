"""The small AlexNet of property inference, for face images."""

from __future__ import annotations

from typing import Literal

from torch import nn

from leaktight.models.network import Network
from leaktight.models.stack import stack

_FILTERS = ((16, True), (32, True), (64, True))


class FaceAlexNet(Network):
    """Three 3x3 convolutions of 16, 32 and 64 channels, each with ReLU and a pooling, linear 256, then the head: five layers with weights.

    Example:
        >>> model = FaceAlexNet().build((3, 62, 47), classes=2, seed=0)
        >>> tuple(model.body.linear1.weight.shape)
        (256, 2240)

    Differs from the paper: it calls this AlexNet, which here is another network's name. Padding and initial weights are not given:
    images keep their size in a convolution, and weights are He's with biases at 0; the head keeps torch's own.

    References:
        Mo et al., Layer-wise Characterization of Latent Information Leakage in Federated Learning, 2021, section 5.
    """

    kind: Literal["face_alexnet"] = "face_alexnet"

    def parts(self, shape: tuple[int, ...], classes: int) -> tuple[nn.Module, nn.Module]:
        """Return the convolutions with one linear layer, and the linear head."""
        return stack(self.image(shape, smallest=8), _FILTERS, (256,), classes)
