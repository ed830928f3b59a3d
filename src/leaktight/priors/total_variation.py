"""Total variation: neighbouring pixels are alike."""

from __future__ import annotations

from typing import Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from leaktight.core.errors import Refusal
from leaktight.core.task import Batch
from leaktight.priors.network_units import NetworkUnits
from leaktight.priors.prior import Coordinates, Prior


class TotalVariation(Prior):
    r"""Believe that neighbouring pixels are alike, as Inverting Gradients does.

    The penalty of images as the network sees them is

    .. math:: w \left(\overline{|x_{i+1,j} - x_{i,j}|} + \overline{|x_{i,j+1} - x_{i,j}|}\right),

    a mean over all images of a message, channels and pixels. It is no normalised law: the weight is relative to the
    distance that a search minimises, and has to be tuned for it.

    Args:
        weight: \(w\), in [0, inf); 0 is the flat prior.
        colours: whether differences between colour channels count as further channels ("double opponents").

    Example:
        >>> prior = TotalVariation(weight=2.0)
        >>> coordinates = prior.coordinates((1, 2, 2), nn.Identity(), None, 10)
        >>> z = torch.tensor([[0.0, 1.0, 0.0, 1.0]])
        >>> coordinates.penalty(z, coordinates.decode(z, torch.zeros(1, 10))).item()
        2.0

    Differs from the paper: none known. It is the anisotropic form of the authors' code.

    References:
        Geiping et al., "Inverting Gradients: How easy is it to break privacy in federated learning?", 2020, equation 4.
    """

    kind: Literal["total_variation"] = "total_variation"
    weight: float = Field(default=1e-4, ge=0)
    colours: bool = False

    def coordinates(
        self, shape: tuple[int, ...], normalise: nn.Module, public: Batch | None, classes: int
    ) -> Coordinates:
        """Return the network's units, where images are expected; others are refused."""
        if len(shape) != 3:
            raise Refusal(
                f"The prior total_variation is for images of shape (channels, height, width). "
                f"Got inputs of shape {shape} instead; take `flat` or `generic`."
            )
        return _TotalVariation(shape, normalise, self.weight, self.colours)


class _TotalVariation(NetworkUnits):
    def __init__(self, shape: tuple[int, ...], normalise: nn.Module, weight: float, colours: bool) -> None:
        super().__init__(shape, normalise)
        self._weight, self._colours = weight, colours

    def penalty(self, z: Tensor, inputs: Tensor) -> Tensor:
        return self._weight * total_variation(z.view(-1, *self.shape), colours=self._colours)


def total_variation(images: Tensor, *, colours: bool = False) -> Tensor:
    """Return the mean absolute difference of neighbouring pixels, down plus across; a single row or column has none.

    Args:
        images: (n, channels, height, width).
        colours: whether differences between colour channels count as further channels ("double opponents").

    Example:
        >>> total_variation(torch.zeros(1, 1, 4, 4)).item()
        0.0
    """
    if images.dim() != 4:
        raise Refusal(
            f"Total variation is for images, four dimensions with that of the examples. Got {images.dim()} instead."
        )
    if colours and images.shape[1] == 3:
        red, green, blue = images[:, 0:1], images[:, 1:2], images[:, 2:3]
        images = torch.cat([images, red - green, red - blue, green - blue], dim=1)
    down = images[:, :, 1:, :] - images[:, :, :-1, :]
    across = images[:, :, :, 1:] - images[:, :, :, :-1]
    parts = [difference.abs().mean() for difference in (down, across) if difference.numel()]
    return sum(parts, images.new_zeros(()))
