"""Recognisers: a classifier, learned from public examples alone, says what a made-up picture shows, if anything."""

from __future__ import annotations

import dataclasses
import hashlib

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from leaktight.core.random import Stream, global_seed, stream
from leaktight.core.task import Batch

STEPS = 800
"""How many steps a recogniser learns for: on the 10,000 test digits of MNIST about five passes."""

_BATCH = 64
_KEPT = 4
_recognisers: dict[str, Recogniser] = {}


@dataclasses.dataclass(frozen=True)
class Recogniser:
    """A small convolutional network that was learned from public examples, and from pictures of nothing.

    Args:
        network: from images to scores, of each class and of nothing at all.
        classes: how many classes it tells apart.
    """

    network: nn.Module = dataclasses.field(repr=False)
    classes: int

    @torch.no_grad()
    def probabilities(self, inputs: Tensor) -> Tensor:
        """Return the probability of each class, and last of nothing, by image; images are cut to [0, 1]."""
        images = inputs.detach().cpu().float().clamp(0, 1)
        pieces = [self.network(images[start : start + 512]) for start in range(0, len(images), 512)]
        return torch.cat(pieces).softmax(1)


def recogniser(public: Batch, seed: int = 0) -> Recogniser:
    """Return the recogniser of public examples: two 5x5 convolutions of stride 2 (16, 32 channels) and a linear layer.

    It may say that a picture shows nothing: a plain classifier has to assign noise to some class, often all of it to
    the same one, and would find an attack that learned nothing very successful if that is the victim's. It follows from
    the examples and the seed alone; whoever asks again about the same examples in this process is given the same one.

    Args:
        public: images in [0, 1] of shape (channels, height, width), with labels from 0.
        seed: what its initial weights, the order of examples and the pictures of nothing derive from.

    Example:
        >>> left, right = torch.zeros(2, 8, 1, 8, 8)
        >>> left[..., :4], right[..., 4:] = 1, 1
        >>> found = recogniser(Batch(torch.cat([left, right]), torch.arange(16) // 8))
        >>> found.probabilities(torch.stack([left[0], right[0], torch.rand(1, 8, 8, generator=stream(0))])).argmax(1)
        tensor([0, 1, 2])
    """
    key = _content(public, seed)
    if key not in _recognisers:
        _recognisers[key] = _train(public, seed)
        for old in list(_recognisers)[:-_KEPT]:
            del _recognisers[old]
    return _recognisers[key]


def pictures_of_nothing(images: Tensor, rng: Stream) -> Tensor:
    """Return as many pictures that show nothing: three quarters are shuffled pieces of the images, the rest is noise.

    The pieces of one picture are single pixels, or squares of up to a seventh of its side. So they are as light and
    dark, and some as smooth, as what they are made of.

    Args:
        images: of shape (examples, channels, height, width).
        rng: where the disorder comes from.

    Example:
        >>> image = torch.arange(64.0).view(1, 1, 8, 8) / 64
        >>> sorted(pictures_of_nothing(image, stream(0)).flatten().tolist()) == image.flatten().tolist()
        True
    """
    side = min(images.shape[-2:])
    largest = 1
    while largest * 14 <= side:
        largest *= 2
    pictures = images.clone()
    for place, size in enumerate((1, max(1, largest // 2), largest)):
        pictures[place::4] = _shuffle(images[place::4], size, rng)
    rest = images[3::4]
    if len(rest):
        coarse = torch.rand(*rest.shape[:2], *(max(2, each // 4) for each in rest.shape[-2:]), generator=rng)
        pictures[3::4] = F.interpolate(coarse, rest.shape[-2:], mode="bilinear", align_corners=False)
    return pictures


def _shuffle(images: Tensor, size: int, rng: Stream) -> Tensor:
    """Shuffle each image's squares of so many pixels a side; what does not fill a square stays."""
    count, channels, height, width = images.shape
    down, across = height // size, width // size
    inner = images[..., : down * size, : across * size]
    pieces = inner.reshape(count, channels, down, size, across, size).permute(0, 2, 4, 1, 3, 5).flatten(1, 2)
    order = torch.rand(count, down * across, generator=rng).argsort(1)
    moved = torch.stack([each[places] for each, places in zip(pieces, order, strict=True)]) if count else pieces
    shuffled = images.clone()
    back = moved.reshape(count, down, across, channels, size, size).permute(0, 3, 1, 4, 2, 5)
    shuffled[..., : down * size, : across * size] = back.reshape(inner.shape)
    return shuffled


def _content(public: Batch, seed: int) -> str:
    digest = hashlib.sha256(f"{seed} {tuple(public.inputs.shape)} {public.inputs.dtype}".encode())
    for tensor in (public.inputs, public.labels):
        digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()


def _train(public: Batch, seed: int) -> Recogniser:
    inputs, labels = public.inputs.detach().cpu().float(), public.labels.cpu()
    classes = int(labels.max()) + 1
    network = _network(tuple(inputs.shape[1:]), classes + 1, seed)
    steps = torch.optim.Adam(network.parameters(), lr=2e-3)
    rng = stream(seed, "recogniser")
    order = torch.empty(0, dtype=torch.long)
    with torch.enable_grad():
        for _ in range(STEPS):
            if not len(order):
                order = torch.randperm(len(labels), generator=rng)
            chosen, order = order[:_BATCH], order[_BATCH:]
            empty = pictures_of_nothing(inputs[chosen][: _BATCH // 4], rng)
            wanted = torch.cat([labels[chosen], labels.new_full((len(empty),), classes)])
            steps.zero_grad()
            loss = F.cross_entropy(network(torch.cat([inputs[chosen], empty])), wanted)
            loss.backward()  # type: ignore[no-untyped-call]
            steps.step()
    return Recogniser(network.requires_grad_(False), classes)


def _network(shape: tuple[int, ...], outputs: int, seed: int) -> nn.Module:
    channels, height, width = shape
    features = 32 * (-(-height // 4)) * (-(-width // 4))
    with global_seed(seed):
        return nn.Sequential(
            nn.Conv2d(channels, 16, 5, stride=2, padding=2),
            nn.ReLU(),
            nn.Conv2d(16, 32, 5, stride=2, padding=2),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(features, outputs),
        )
