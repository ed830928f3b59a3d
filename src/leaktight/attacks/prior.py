"""What an attacker believes about images before it sees a gradient."""

from __future__ import annotations

import torch
from torch import Tensor

from leaktight.core.errors import Refusal


def total_variation(images: Tensor, *, colours: bool = False) -> Tensor:
    """Return the mean absolute difference of neighbouring pixels, down plus across.

    Args:
        images: (n, channels, height, width).
        colours: whether differences between colour channels count as further channels ("double opponents").

    Example:
        >>> total_variation(torch.zeros(1, 1, 4, 4)).item()
        0.0
    """
    if images.dim() != 4:
        raise Refusal("Total variation is for images. Got inputs that are no images instead; set `total_variation` to 0.")
    if colours and images.shape[1] == 3:
        red, green, blue = images[:, 0:1], images[:, 1:2], images[:, 2:3]
        images = torch.cat([images, red - green, red - blue, green - blue], dim=1)
    down = (images[:, :, 1:, :] - images[:, :, :-1, :]).abs().mean()
    across = (images[:, :, :, 1:] - images[:, :, :, :-1]).abs().mean()
    return down + across
