"""The paper's networks by its names for them, and their layers by number."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from leaktight.core.message import layer_of
from leaktight.models import FaceAlexNet, FCNet, VGG11Net
from leaktight.models.network import Network

ALEXNET, VGG11NET, FCNET = "AlexNet", "VGG11Net", "FCNet"
NETWORKS: dict[str, Network] = {ALEXNET: FaceAlexNet(), VGG11NET: VGG11Net(), FCNET: FCNet()}
CONVOLUTIONAL = (ALEXNET, VGG11NET)


def layers_of(network: Network) -> dict[int, str]:
    """Return the layers with weights in order, by number from 1, as messages name them.

    Example:
        >>> layers_of(FaceAlexNet())
        {1: 'body.conv1', 2: 'body.conv2', 3: 'body.conv3', 4: 'body.linear1', 5: 'head'}
    """
    return dict(_layers(network))


def first_linear(name: str) -> int:
    """Return the number of a network's first fully connected layer.

    Example:
        >>> {name: first_linear(name) for name in NETWORKS}
        {'AlexNet': 4, 'VGG11Net': 9, 'FCNet': 1}
    """
    return next(number for number, layer in layers_of(NETWORKS[name]).items() if "conv" not in layer)


@cache
def _layers(network: Network) -> tuple[tuple[int, str], ...]:
    # Names do not depend on the size of images; this is one that every network takes.
    model = network.build((1, 16, 16), classes=2, seed=0)
    return tuple(enumerate(dict.fromkeys(map(layer_of, model.tensors())), start=1))


def short_name(layer: str) -> str:
    """Return a layer's own name.

    Example:
        >>> short_name("body.conv1"), short_name("head")
        ('conv1', 'head')
    """
    return layer.rpartition(".")[2]


def convolutional(names: Sequence[str]) -> tuple[str, ...]:
    """Return those of some networks that have convolutions."""
    return tuple(name for name in names if name in CONVOLUTIONAL)
