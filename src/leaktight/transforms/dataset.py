"""A policy as a transform of single images, for whoever trains with plain PyTorch."""

from __future__ import annotations

from typing import TypeVar

import torch
from PIL import Image
from torch import Tensor
from torch.utils.data import get_worker_info

from leaktight.core.errors import Refusal
from leaktight.core.random import stream
from leaktight.transforms.batched import as_image, as_pixels
from leaktight.transforms.images import as_bytes
from leaktight.transforms.policy import Policy, Probability, require_probability

Picture = TypeVar("Picture", Image.Image, Tensor)


class PolicyTransform:
    """Apply a policy to one image per call, as a `Dataset` calls its `transform`.

    What the n-th call draws depends on the seed, the worker and n alone. Workers of a `DataLoader` draw from streams of their own; those
    that are started anew for each epoch begin at the first call again, so ask for `persistent_workers=True`.

    Args:
        policy: what is applied.
        seed: what the draws derive from.
        probability: `always`, or `listed` for the library's probabilities.

    Example:
        >>> transform = Policy.of("3-1-7").transform(seed=1)
        >>> transform(torch.rand(3, 32, 32)).shape, transform(Image.new("L", (28, 28))).size
        (torch.Size([3, 32, 32]), (28, 28))
    """

    def __init__(self, policy: Policy, seed: int = 0, probability: Probability = "always") -> None:
        require_probability(probability)
        self.policy, self.seed, self.probability = policy, seed, probability
        self.calls = 0

    def __call__(self, image: Picture) -> Picture:
        """Return one Pillow image (grey or RGB) or one tensor (channels, height, width) in [0, 1], changed, as the same kind."""
        worker = get_worker_info()
        rng = stream(self.seed, "policy transform", 0 if worker is None else worker.id, self.calls)
        self.calls += 1
        if isinstance(image, Tensor):
            return self.policy.apply(image[None], rng, self.probability)[0]
        if not isinstance(image, Image.Image):
            raise Refusal(
                f"A transformation needs a Pillow image or a tensor. Got {type(image).__name__} instead; convert it first."
            )
        if image.mode not in ("L", "RGB"):
            raise Refusal(
                f"A transformation needs a grey (L) or colour (RGB) image. Got mode {image.mode} instead; convert it first."
            )
        pixels = torch.from_numpy(as_pixels(image).copy())[None].float().div_(255)
        return as_image(as_bytes(self.policy.apply(pixels, rng, self.probability))[0])

    def __repr__(self) -> str:
        return f"PolicyTransform({str(self.policy)!r}, seed={self.seed}, probability={self.probability!r})"
