"""Stacks: 3x3 convolutions, then linear layers, all with ReLU; what several of the papers' networks are."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from torch import nn

from leaktight.models.layers import he


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
