"""The semi-trained model of Algorithm 1: the networks by name, for weights that a search has left behind."""

from __future__ import annotations

from collections import OrderedDict

from torch import nn

from leaktight.models import LeNet
from leaktight.models.network import Network
from leaktight.papers.transformation_search.scales import LENET, RESNET, score_network, wide_resnet


def lenet(shape: tuple[int, ...], classes: int) -> nn.Module:
    """Return the network of the smaller scales."""
    return _whole(LeNet(), shape, classes)


def resnet20(shape: tuple[int, ...], classes: int) -> nn.Module:
    """Return the network of the scale `paper`."""
    return _whole(score_network(wide_resnet()), shape, classes)


def _whole(network: Network, shape: tuple[int, ...], classes: int) -> nn.Module:
    """Return body and head as one module, whose parameters are named as those of a model."""
    body, head = network.parts(shape, classes)
    return nn.Sequential(OrderedDict(body=body, head=head))


FUNCTIONS = {LENET: f"{__name__}:lenet", RESNET: f"{__name__}:resnet20"}
"""What makes each network."""
