"""Recognisers: classifiers, learned from public examples alone, say what a made-up picture shows, if anything."""

from __future__ import annotations

import dataclasses
import hashlib
import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from leaktight.core.random import Stream, global_seed, seed_of, stream
from leaktight.core.task import Batch
from leaktight.models.generator import Generator

STEPS = 400
"""How many steps each network learns for: on the 10,000 test digits of MNIST about two and a half passes."""

_BATCH = 64
_KEPT = 4
_AGAIN = 25
"""After how many steps a recogniser learns new textures of generators."""
_TEXTURES = 256
"""How many of these it keeps to learn from."""
_recognisers: dict[str, Recogniser] = {}


@dataclasses.dataclass(frozen=True)
class Recogniser:
    """Small networks of unlike architecture, learned from public examples and from pictures of nothing.

    Args:
        networks: each from images to scores, of each class and of nothing at all.
        classes: how many classes they tell apart.
    """

    networks: tuple[nn.Module, ...] = dataclasses.field(repr=False)
    classes: int

    @torch.no_grad()
    def probabilities(self, inputs: Tensor) -> Tensor:
        """Return the mean probability of each class, and last of nothing, by image; images are cut to [0, 1]."""
        images = inputs.detach().cpu().float().clamp(0, 1)
        pieces = [
            torch.stack([network(images[start : start + 512]).softmax(1) for network in self.networks]).mean(0)
            for start in range(0, len(images), 512)
        ]
        return torch.cat(pieces)


def recogniser(public: Batch, seed: int = 0) -> Recogniser:
    """Return the recogniser of public examples: three unlike networks, whose probabilities are averaged.

    They are two 5x5 convolutions of stride 2 with ReLU; two 3x3 convolutions with tanh and pooling; and one hidden
    linear layer. What fools one of them need not fool the others. Each may say that a picture shows nothing: a plain
    classifier has to assign noise to some class, often all of it to the same one, and would find an attack that learned
    nothing very successful if that is the victim's. Nothing is noise, examples in pieces, and what small generators
    make that were fitted to this very network for a few steps: the textures that a generator finds before it finds a
    picture. All follows from the examples and the seed alone; whoever asks again about the same examples in this
    process is given the same one.

    Args:
        public: images in [0, 1] of shape (channels, height, width), with labels from 0.
        seed: what initial weights, the order of examples and the pictures of nothing derive from.

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
    networks = []
    for name, make in _ARCHITECTURES.items():
        with global_seed(seed_of(seed, "recogniser", name)):
            network = make(tuple(inputs.shape[1:]), classes + 1)
        with torch.enable_grad():
            _fit(network, inputs, labels, classes, seed_of(seed, name))
        networks.append(network.requires_grad_(False))
    return Recogniser(tuple(networks), classes)


def _fit(network: nn.Module, inputs: Tensor, labels: Tensor, classes: int, seed: int) -> None:
    steps = torch.optim.Adam(network.parameters(), lr=2e-3)
    rng = stream(seed, "recogniser")
    order, textures = torch.empty(0, dtype=torch.long), inputs[:0]
    for step in range(STEPS):
        if not len(order):
            order = torch.randperm(len(labels), generator=rng)
        chosen, order = order[:_BATCH], order[_BATCH:]
        if step % _AGAIN == 0 and all(side % 4 == 0 for side in inputs.shape[2:]):
            textures = torch.cat([textures, _fool(network, tuple(inputs.shape[1:]), classes, seed, rng)])[-_TEXTURES:]
        quarter = max(1, len(chosen) // 4)
        known = textures[torch.randint(len(textures), (quarter,), generator=rng)] if len(textures) else textures
        empty = torch.cat([pictures_of_nothing(inputs[chosen][:quarter], rng), known])
        wanted = torch.cat([labels[chosen], labels.new_full((len(empty),), classes)])
        steps.zero_grad()
        loss = F.cross_entropy(network(torch.cat([inputs[chosen], empty])), wanted)
        loss.backward()  # type: ignore[no-untyped-call]
        steps.step()


def _fool(network: nn.Module, shape: tuple[int, ...], classes: int, seed: int, rng: Stream) -> Tensor:
    """Return what a new generator makes after a few steps towards some class of the network."""
    start = seed_of(seed, "textures", int(torch.randint(2**31, (), generator=rng)))
    generator = Generator(noise=16, width=4).build(shape, start)
    wanted = torch.full((16,), int(torch.randint(classes, (), generator=rng)))
    steps = torch.optim.Adam(generator.parameters(), lr=0.02)
    for _ in range(int(torch.randint(1, 9, (), generator=rng))):
        steps.zero_grad()
        loss = F.cross_entropy(network(generator(2 * torch.rand(16, 16, generator=rng) - 1)), wanted)
        loss.backward()  # type: ignore[no-untyped-call]
        steps.step()
    network.zero_grad()
    textures: Tensor = generator(2 * torch.rand(16, 16, generator=rng) - 1)
    return textures.detach()


def _strided_network(shape: tuple[int, ...], outputs: int) -> nn.Module:
    channels, height, width = shape
    return nn.Sequential(
        nn.Conv2d(channels, 16, 5, stride=2, padding=2),
        nn.ReLU(),
        nn.Conv2d(16, 32, 5, stride=2, padding=2),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(32 * (-(-height // 4)) * (-(-width // 4)), outputs),
    )


def _pooled_network(shape: tuple[int, ...], outputs: int) -> nn.Module:
    channels, height, width = shape
    return nn.Sequential(
        nn.Conv2d(channels, 8, 3, padding=1),
        nn.Tanh(),
        nn.AvgPool2d(2, ceil_mode=True),
        nn.Conv2d(8, 16, 3, padding=1),
        nn.Tanh(),
        nn.AvgPool2d(2, ceil_mode=True),
        nn.Flatten(),
        nn.Linear(16 * (-(-height // 4)) * (-(-width // 4)), outputs),
    )


def _dense_network(shape: tuple[int, ...], outputs: int) -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(math.prod(shape), 64), nn.GELU(), nn.Linear(64, outputs))


_ARCHITECTURES: dict[str, Callable[[tuple[int, ...], int], nn.Module]] = {
    "strided": _strided_network,
    "pooled": _pooled_network,
    "dense": _dense_network,
}
