"""A policy as a transform of single images, for whoever trains with plain PyTorch."""

from __future__ import annotations

import os
from typing import TypeVar

import torch
from PIL import Image
from torch import Tensor
from torch.utils.data import get_worker_info

from leaktight.core.draws import Draws, public_draws
from leaktight.core.errors import Refusal
from leaktight.core.secure import SecretKey
from leaktight.transforms.batched import as_image, as_pixels
from leaktight.transforms.images import as_bytes
from leaktight.transforms.policy import Policy, Probability, require_probability

Picture = TypeVar("Picture", Image.Image, Tensor)


class PolicyTransform:
    """Apply a policy to one image per call, as a `Dataset` calls its `transform`.

    Whoever can repeat the draws knows what became of each image. So they come from a key of 256 secret bits, which each
    process makes for itself, workers of a `DataLoader` too. For an experiment they can follow from a seed: what the
    n-th call draws then depends on the seed, the worker and n alone, and workers that are started anew for each epoch
    begin at the first call again.

    Args:
        policy: what is applied.
        seed: what the draws derive from, for an experiment; None for a secret key.
        probability: `always`, or `listed` for the library's probabilities.

    Example:
        >>> transform = Policy.of("3-1-7").transform()
        >>> transform(torch.rand(3, 32, 32)).shape, transform(Image.new("L", (28, 28))).size
        (torch.Size([3, 32, 32]), (28, 28))
    """

    def __init__(self, policy: Policy, seed: int | None = None, probability: Probability = "always") -> None:
        require_probability(probability)
        self.policy, self.seed, self.probability = policy, seed, probability
        self.calls = 0
        self._secret: tuple[int, Draws] | None = None

    def __call__(self, image: Picture) -> Picture:
        """Return one image, changed, as the same kind.

        It is a Pillow image (grey or RGB) or a tensor (channels, height, width) in [0, 1].
        """
        draws = self._draws()
        if isinstance(image, Tensor):
            return self.policy.apply(image[None], draws, self.probability)[0]
        if not isinstance(image, Image.Image):
            raise Refusal(
                f"A transformation needs a Pillow image or a tensor. Got {type(image).__name__} instead; convert it "
                "first."
            )
        if image.mode not in ("L", "RGB"):
            raise Refusal(
                f"A transformation needs a grey (L) or colour (RGB) image. Got mode {image.mode} instead; convert it "
                "first."
            )
        pixels = torch.from_numpy(as_pixels(image).copy())[None].float().div_(255)
        return as_image(as_bytes(self.policy.apply(pixels, draws, self.probability))[0])

    def _draws(self) -> Draws:
        if self.seed is None:
            # A process that was forked must not draw what its parent and its siblings draw.
            if self._secret is None or self._secret[0] != os.getpid():
                self._secret = os.getpid(), SecretKey.new().draws()
            return self._secret[1]
        worker, self.calls = get_worker_info(), self.calls + 1
        return public_draws(self.seed, "policy transform", 0 if worker is None else worker.id, self.calls - 1)

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_secret": None}

    def __repr__(self) -> str:
        return f"PolicyTransform({str(self.policy)!r}, seed={self.seed}, probability={self.probability!r})"
