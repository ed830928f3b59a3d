"""Stacks of 3x3 convolutions, then linear layers, all with ReLU: two networks for face images."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Literal

from torch import nn

from leaktight.models.layers import he
from leaktight.models.network import Network

_ALEXNET = ((16, True), (32, True), (64, True))
_VGG11 = ((16, False), (16, False), (16, False), (16, False), (32, False), (32, True), (64, True), (64, True))
"""For each convolution its channels, and whether a pooling follows."""


class FaceAlexNet(Network):
    """Three 3x3 convolutions of 16, 32 and 64 channels, each with ReLU and a pooling, linear 256, then the head.

    It has five layers with weights.

    Example:
        >>> model = FaceAlexNet().build((3, 62, 47), classes=2, seed=0)
        >>> tuple(model.body.linear1.weight.shape)
        (256, 2240)

    Differs from the paper: it calls this AlexNet, which here is another network's name. Padding and initial weights are
    not given: images keep their size in a convolution, and weights are He's with biases at 0; the head keeps torch's
    own.

    References:
        Mo et al., Layer-wise Characterization of Latent Information Leakage in Federated Learning, 2021, section 5.
    """

    kind: Literal["face_alexnet"] = "face_alexnet"

    def parts(self, shape: tuple[int, ...], classes: int) -> tuple[nn.Module, nn.Module]:
        """Return the convolutions with one linear layer, and the linear head."""
        return stack(self.image(shape, smallest=8), _ALEXNET, (256,), classes)


class VGG11Net(Network):
    """Eight 3x3 convolutions with ReLU, linear 256 and 128, then the head: eleven layers with weights.

    The convolutions have 16, 16, 16, 16, 32, 32, 64 and 64 channels; a pooling follows on each of the last three.

    Example:
        >>> model = VGG11Net().build((3, 62, 47), classes=2, seed=0)
        >>> sum(name.endswith("weight") for name, _ in model.named_parameters())
        11
        >>> tuple(model.body.linear1.weight.shape)
        (256, 2240)

    Differs from the paper: padding and initial weights are not given: images keep their size in a convolution, and
    weights are He's with biases at 0; the head keeps torch's own.

    References:
        Mo et al., Layer-wise Characterization of Latent Information Leakage in Federated Learning, 2021, section 5.
    """

    kind: Literal["vgg11net"] = "vgg11net"

    def parts(self, shape: tuple[int, ...], classes: int) -> tuple[nn.Module, nn.Module]:
        """Return the convolutions with two linear layers, and the linear head."""
        return stack(self.image(shape, smallest=8), _VGG11, (256, 128), classes)


def stack(
    shape: tuple[int, int, int], filters: Sequence[tuple[int, bool]], hidden: Sequence[int], classes: int
) -> tuple[nn.Module, nn.Module]:
    """Return convolutions and hidden linear layers as the body, and the linear head.

    Args:
        shape: channels, height and width of an image; each pooling halves the last two.
        filters: for each convolution its channels, and whether a 2x2 max-pooling follows.
        hidden: the width of each hidden linear layer, at least one.
        classes: how many outputs the head has.

    Example:
        >>> body, head = stack((1, 8, 8), filters=((4, True),), hidden=(16,), classes=2)
        >>> [name for name, _ in body.named_children()]
        ['conv1', 'relu1', 'pool1', 'flatten', 'linear1', 'relu2']
        >>> body.linear1
        Linear(in_features=64, out_features=16, bias=True)
    """
    channels, height, width = shape
    layers: OrderedDict[str, nn.Module] = OrderedDict()
    for number, (wanted, pooled) in enumerate(filters, 1):
        layers[f"conv{number}"] = nn.Conv2d(channels, wanted, 3, padding=1)
        layers[f"relu{number}"] = nn.ReLU()
        channels = wanted
        if pooled:
            layers[f"pool{number}"] = nn.MaxPool2d(2)
            height, width = height // 2, width // 2
    layers["flatten"] = nn.Flatten()
    features = channels * height * width
    for number, wanted in enumerate(hidden, 1):
        layers[f"linear{number}"] = nn.Linear(features, wanted)
        layers[f"relu{len(filters) + number}"] = nn.ReLU()
        features = wanted
    body = nn.Sequential(layers)
    he(body)
    return body, nn.Linear(features, classes)
