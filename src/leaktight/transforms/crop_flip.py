"""Crop and flip: what the paper's training does to every image before the policy."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from leaktight.transforms.images import ImageDraws, require_images

PAD = 4


def crop_flip(images: Tensor, draws: ImageDraws) -> Tensor:
    r"""Return each image shifted by up to four pixels each way and, for every other one, seen in a mirror.

    An image is padded by four black pixels on each side, cut to its size again at one of 9 x 9 places, and flipped from
    left to right with probability 1/2, all drawn for each image.

    Args:
        images: (n, channels, height, width) in [0, 1], of 1 or 3 channels.
        draws: gives the places and the flips.

    Example:
        >>> from leaktight.core.draws import public_draws
        >>> crop_flip(torch.ones(2, 1, 8, 8), public_draws(0)).shape
        torch.Size([2, 1, 8, 8])

    References:
        Gao et al., "Privacy-preserving Collaborative Learning with Automatic Transformation Search", 2021; its public
        code for 32x32 images.
    """
    require_images(images)
    count, _, height, width = images.shape
    tops, lefts = draws.integers(2 * PAD + 1, (2, count))
    mirrored = draws.integers(2, (count,)).bool()
    columns = torch.where(mirrored[:, None], torch.arange(width - 1, -1, -1), torch.arange(width)) + lefts[:, None]
    rows = torch.arange(height) + tops[:, None]
    padded = F.pad(images, (PAD, PAD, PAD, PAD)).movedim(1, -1)
    taken = padded[
        torch.arange(count)[:, None, None], rows[:, :, None].to(images.device), columns[:, None].to(images.device)
    ]
    return taken.movedim(-1, 1).contiguous()
