"""Lasting draws: what becomes of an image is drawn once, and is the same whenever its owner trains on it again."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from leaktight.core.draws import Draws
from leaktight.core.local import Memory
from leaktight.core.secure import KEY_BYTES, SecretKey

KEPT = "seed of draws"
_BYTE = 256


class EachImage:
    """Numbers for a batch of images, those of each image from a stream of its own.

    The last dimension of what is drawn is that of the images.

    Args:
        draws: one stream for each image.
    """

    def __init__(self, draws: Sequence[Draws]) -> None:
        self._draws = draws

    def integers(self, high: int, shape: Sequence[int] = ()) -> Tensor:
        """Draw whole numbers from 0 to `high` - 1."""
        return self._stack(shape, lambda own, rest: own.integers(high, rest))

    def uniforms(self, shape: Sequence[int], dtype: torch.dtype = torch.float32) -> Tensor:
        """Draw numbers from [0, 1)."""
        return self._stack(shape, lambda own, rest: own.uniforms(rest, dtype))

    def _stack(self, shape: Sequence[int], draw: Callable[[Draws, Sequence[int]], Tensor]) -> Tensor:
        if not self._draws:
            return torch.empty(*shape, dtype=torch.long)
        return torch.stack([draw(own, tuple(shape[:-1])) for own in self._draws], -1)


def lasting_draws(images: Tensor, memory: Memory, fresh: Draws) -> EachImage:
    """Return numbers that depend on each image and its owner's secret alone, not on the round.

    The secret has 256 bits. It is drawn once and kept in memory: where every message has a new key, it could not be
    drawn again. Images of the same pixels get the same numbers.

    Args:
        images: (n, ...).
        memory: the owner's, where the secret is or will be.
        fresh: where the secret comes from the first time.

    Example:
        >>> from leaktight.core.draws import public_draws
        >>> memory, images = {}, torch.rand(4, 1, 8, 8)
        >>> first, again = (lasting_draws(images, memory, public_draws(seed)).uniforms((4,)) for seed in (0, 1))
        >>> torch.equal(first, again)
        True
    """
    if KEPT not in memory:
        memory[KEPT] = fresh.integers(_BYTE, (KEY_BYTES,))
    key = SecretKey(bytes(memory[KEPT].tolist()))
    pixels = images.detach().to("cpu", torch.float32).contiguous().numpy()
    return EachImage([key.derive(hashlib.sha256(image.tobytes()).hexdigest()).draws() for image in pixels])
