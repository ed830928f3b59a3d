"""VGG11Net, for face images."""

from __future__ import annotations

from typing import Literal

from torch import nn

from leaktight.models.network import Network
from leaktight.models.stack import stack

_FILTERS = ((16, False), (16, False), (16, False), (16, False), (32, False), (32, True), (64, True), (64, True))


class VGG11Net(Network):
    """Eight 3x3 convolutions with ReLU, linear 256 and 128, then the head: eleven layers with weights.

    The convolutions have 16, 16, 16, 16, 32, 32, 64 and 64 channels; a pooling follows on each of the last three.

    Example:
        >>> model = VGG11Net().build((3, 62, 47), classes=2, seed=0)
        >>> sum(name.endswith("weight") for name, _ in model.named_parameters())
        11
        >>> tuple(model.body.linear1.weight.shape)
        (256, 2240)

    Differs from the paper: padding and initial weights are not given: images keep their size in a convolution, and weights are
    He's with biases at 0; the head keeps torch's own.

    References:
        Mo et al., Layer-wise Characterization of Latent Information Leakage in Federated Learning, 2021, section 5.
    """

    kind: Literal["vgg11net"] = "vgg11net"

    def parts(self, shape: tuple[int, ...], classes: int) -> tuple[nn.Module, nn.Module]:
        """Return the convolutions with two linear layers, and the linear head."""
        return stack(self.image(shape, smallest=8), _FILTERS, (256, 128), classes)
