"""Generators: from noise to images, the other half of a GAN."""

from __future__ import annotations

import math
from collections import OrderedDict
from typing import Annotated

from pydantic import Field
from torch import nn

from leaktight.core.errors import InvalidValue
from leaktight.core.random import global_seed
from leaktight.core.value import Value

_SMALLEST = 4


class Generator(Value):
    r"""The recipe of a DCGAN generator: a linear layer, then transposed convolutions.

    The linear layer makes a small map of many channels. The convolutions double its side.

    Noise \(z \sim U(-1, 1)^{d}\) becomes a map of s x s, where s is the side halved as often as it stays whole and at
    least 4: 7 for 28x28, 4 for 32x32 and 64x64. Each doubling is a transposed convolution of 4x4 with stride 2 that
    halves the channels, with batch norm and ReLU; the last one makes the image, and a sigmoid brings its pixels into
    (0, 1). So a 28x28 image takes two doublings, one of 32x32 three and one of 64x64 four, from \(2w\), \(4w\) and
    \(8w\) channels. Images need not be square.

    Args:
        noise: d, the length of the noise, at least 1.
        width: w, channels before the last doubling, at least 1; wider is better and slower.

    Example:
        >>> import torch
        >>> net = Generator(width=8).build((1, 28, 28), seed=0)
        >>> net(torch.zeros(2, 100)).shape
        torch.Size([2, 1, 28, 28])

    Differs from the paper: DCGAN ends in tanh because its images lie in (-1, 1); here pixels lie in [0, 1]. It has 128
    channels before the last doubling and draws its 64x64 from 1,024; the default here is for a processor without a
    graphics card. Batch norm always uses the statistics of the batch, in sampling as in training, so that a generator
    is its parameters and nothing else.

    References:
        Radford, Metz and Chintala, Unsupervised Representation Learning with Deep Convolutional Generative Adversarial
        Networks, ICLR 2016, section 3 and Fig. 1.
    """

    noise: Annotated[int, Field(ge=1)] = 100
    width: Annotated[int, Field(ge=1)] = 32

    def build(self, shape: tuple[int, ...], seed: int) -> nn.Module:
        """Return a new generator of images of this shape, with initial weights that follow from the seed alone.

        Raises:
            InvalidValue: the shape is not that of an image whose sides are multiples of 4.
        """
        doublings = _doublings(shape)
        channels, height, width = shape
        scale = 2**doublings
        with global_seed(seed):
            generator = self._layers(channels, (height // scale, width // scale), doublings)
            _initialise(generator)
        return generator

    def _layers(self, channels: int, start: tuple[int, int], doublings: int) -> nn.Sequential:
        wide = self.width * 2 ** (doublings - 1)
        layers: OrderedDict[str, nn.Module] = OrderedDict()
        layers["linear"] = nn.Linear(self.noise, wide * math.prod(start))
        layers["map"] = nn.Unflatten(1, (wide, *start))
        layers["norm0"] = _norm(wide)
        layers["relu0"] = nn.ReLU()
        for number in range(1, doublings):
            layers[f"conv{number}"] = nn.ConvTranspose2d(wide, wide // 2, 4, stride=2, padding=1)
            wide //= 2
            layers[f"norm{number}"] = _norm(wide)
            layers[f"relu{number}"] = nn.ReLU()
        layers[f"conv{doublings}"] = nn.ConvTranspose2d(wide, channels, 4, stride=2, padding=1)
        layers["pixels"] = nn.Sigmoid()
        return nn.Sequential(layers)


def _doublings(shape: tuple[int, ...]) -> int:
    """Return how often a small map is doubled to make an image of this shape."""
    sides = shape[1:] if len(shape) == 3 else ()
    if not sides or min(shape) < 1 or any(side % 4 for side in sides):
        raise InvalidValue(
            "A generator makes images of shape (channels, height, width) whose sides are multiples of 4. Got shape "
            f"{tuple(shape)} instead."
        )
    count = 0
    while all(side % 2 ** (count + 1) == 0 and side >> (count + 1) >= _SMALLEST for side in sides):
        count += 1
    # A side of 4 is doubled twice from a single pixel: two transposed convolutions are the least that shape anything.
    return max(2, count)


def _norm(channels: int) -> nn.Module:
    return nn.BatchNorm2d(channels, track_running_stats=False)


def _initialise(generator: nn.Module) -> None:
    """Draw weights as DCGAN does: N(0, 0.02) for convolutions and the linear layer, N(1, 0.02) for norms, biases 0."""
    for layer in generator.modules():
        if isinstance(layer, nn.Linear | nn.ConvTranspose2d | nn.BatchNorm2d):
            nn.init.normal_(layer.weight, 1.0 if isinstance(layer, nn.BatchNorm2d) else 0.0, 0.02)
            nn.init.zeros_(layer.bias)  # type: ignore[arg-type]
