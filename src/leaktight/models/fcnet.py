"""FCNet: nine linear layers of one width."""

from __future__ import annotations

import math
from collections import OrderedDict
from typing import Annotated, Literal

from pydantic import Field
from torch import nn

from leaktight.models.layers import he
from leaktight.models.network import Network


class FCNet(Network):
    """Flatten, eight linear layers of 32 units with ReLU, then the head: layers of one size at different depths.

    Args:
        depth: how many layers have weights, the head among them, at least 2. The paper's is 9.
        width: units of each hidden layer. The paper's is 32.

    Example:
        >>> model = FCNet().build((3, 62, 47), classes=2, seed=0)
        >>> [tuple(weight.shape) for name, weight in model.named_parameters() if name.endswith("weight")][:2]
        [(32, 8742), (32, 32)]

    Differs from the paper: initial weights are not given and are He's with biases at 0; the head keeps torch's own.
    With torch's own for all, the signal is lost before the ninth layer.

    References:
        Mo et al., Layer-wise Characterization of Latent Information Leakage in Federated Learning, 2021, section 5.
    """

    kind: Literal["fcnet"] = "fcnet"
    depth: Annotated[int, Field(ge=2)] = 9
    width: Annotated[int, Field(ge=1)] = 32

    def parts(self, shape: tuple[int, ...], classes: int) -> tuple[nn.Module, nn.Module]:
        """Return the hidden layers and the linear head."""
        features = math.prod(shape)
        layers: OrderedDict[str, nn.Module] = OrderedDict(flatten=nn.Flatten())
        for number in range(1, self.depth):
            layers[f"linear{number}"] = nn.Linear(features, self.width)
            layers[f"relu{number}"] = nn.ReLU()
            features = self.width
        body = nn.Sequential(layers)
        he(body)
        return body, nn.Linear(features, classes)
