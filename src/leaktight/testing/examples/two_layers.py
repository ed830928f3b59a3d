"""Two layers: the smallest network with a convolution."""

from __future__ import annotations

from collections import OrderedDict
from typing import Literal

from pydantic import Field
from torch import nn

from leaktight.models.network import Network


class TwoLayers(Network):
    """One convolution and a linear head, for whoever wants to see how a network is written.

    Args:
        width: the channels of the convolution, at least 1.
    """

    kind: Literal["example_two_layers"] = "example_two_layers"
    width: int = Field(8, ge=1)

    def parts(self, shape: tuple[int, ...], classes: int) -> tuple[nn.Module, nn.Module]:
        """Return everything up to the features as the body, and the last linear layer as the head."""
        channels, height, width = self.image(shape, smallest=3)
        body = nn.Sequential(
            OrderedDict(conv=nn.Conv2d(channels, self.width, 3, padding=1), relu=nn.ReLU(), flatten=nn.Flatten())
        )
        return body, nn.Linear(self.width * height * width, classes)
