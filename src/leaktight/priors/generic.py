"""Generic: what pictures look like to somebody who has none."""

from __future__ import annotations

import dataclasses
import math
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

from leaktight.core.task import Batch
from leaktight.priors.network_units import NetworkUnits
from leaktight.priors.prior import Coordinates, Prior, Whitened


@dataclasses.dataclass(frozen=True)
class Law:
    """The constants of a Gaussian law of pictures, in units of a pixel's range.

    Args:
        mean: of every pixel.
        level: the variance of a picture's mean, for each direction in colour space.
        contrast: the mean variance of pixels around it, for each direction.
        slope: the power law's exponent, for each direction.
        knee: the frequency below which it flattens, in cycles.
        per: whether cycles are counted per pixel or per picture.
    """

    mean: float
    level: tuple[float, ...]
    contrast: tuple[float, ...]
    slope: tuple[float, ...]
    knee: float
    per: Literal["pixel", "picture"]

    def variances(self, direction: int, height: int, width: int) -> Tensor:
        """Return the variances of the DCT coefficients of one colour direction, (height, width) in double precision."""
        rows, columns = (torch.arange(side, dtype=torch.float64) / (2 * side) for side in (height, width))
        frequency = rows[:, None] + columns
        knee = self.knee if self.per == "pixel" else self.knee / math.sqrt(height * width)
        power = (frequency + knee) ** -self.slope[direction]
        power[0, 0] = 0.0
        pixels = height * width
        variances = power * (pixels * self.contrast[direction] / power.sum().clamp_min(torch.finfo(power.dtype).tiny))
        variances[0, 0] = pixels * self.level[direction]
        return variances


COLOUR = Law(0.43, (0.12, 0.036, 0.003), (0.115, 0.0105, 0.005), (2.7, 3.0, 3.0), 0.014, "pixel")
GREY = Law(0.33, (0.041,), (0.063,), (4.0,), 3.2, "picture")

STRIDE = 0.025
"""The largest root mean square change of a picture for a unit step of a search along a single cosine.

Coarse cosines vary by far more under the law. Chosen on eight CIFAR-10 training images and a gradient of DLNet each:
after 60 evaluations of L-BFGS 35.7 dB with it and 31.3 without, under Gaussian noise of 0.001 32.6 and 30.8, of 0.01
22.8 with and without.
"""

# One bright direction, then red against blue, then green against both.
OPPONENTS = ((3**-0.5, 3**-0.5, 3**-0.5), (2**-0.5, 0.0, -(2**-0.5)), (6**-0.5, -2 * 6**-0.5, 6**-0.5))


class Generic(Prior):
    r"""Believe that examples look like pictures in general: smooth, mostly grey, of middling brightness. Needs no data.

    A Gaussian law. Colours become one bright and two opponent channels, each of which is a sum of cosines (an
    orthonormal DCT) with independent coefficients. A picture's mean has a variance of its own; at frequencies
    \(f = f_\text{down} + f_\text{across}\) above 0 a coefficient's variance is

    .. math:: \operatorname{var} c_f \propto (f + f_0)^{-a},

    scaled so that a pixel's variance is the same for pictures of any size. The search runs in the coefficients over
    their standard deviations, \(z \sim N(0, I)\), so that the prior is \(|z|^2 / 2\) and a step of one length is as
    likely in every direction.

    The constants were chosen by the mean log likelihood per pixel, each set with equal weight, and then rounded:

    - Three channels: CIFAR-10 training images as they are and halved to 16x16, six classes of CIFAR-100, and the two
      photographs that come with scikit-learn, brought to 16, 32 and 64 pixels (`photos`) and as crops of these sizes at
      full resolution. The knee \(f_0\) is 0.014 cycles per pixel: counted per picture the best fit is 0.02 nats per
      pixel worse. Contours of equal variance are straight lines, not circles, which are 0.01 to 0.02 nats worse: real
      scenes have many upright and level edges. CIFAR-10 has 2.09 nats per pixel; white noise of the same variance
      around the same mean has -0.06, and a free variance for each coefficient 2.32.
    - One channel: the above in grey, faces (Olivetti), digits (MNIST) and clothes (Fashion-MNIST), each kind with equal
      weight. Here one object fills the picture whatever the size, and a knee of 3.2 cycles per picture fits better, by
      0.02 nats. Digits are far from photographs: 0.56 nats per pixel, against -0.42 for white noise of the same
      variance and 0.68 for a free variance for each coefficient; clothes 0.62, -0.39 and 0.73. A law chosen on
      photographs alone has -0.2 on digits.

    Other numbers of channels count as so many independent grey pictures. Inputs that are no pictures, such as columns
    of a table, are independent, each standard normal in the units that the network sees.

    Example:
        >>> coordinates = Generic().coordinates((3, 32, 32), nn.Identity(), None, 10)
        >>> z = torch.randn(100, coordinates.width, generator=torch.Generator().manual_seed(0))
        >>> images = coordinates.decode(z, torch.zeros(100, 10))
        >>> round(images.std().item(), 1)
        0.3

    References:
        Field, "Relations between the statistics of natural images and the response properties of cortical cells", 1987:
        the power law. Ruderman, Cronin and Chiao, "Statistics of cone responses to natural images", 1998: opponent
        colours.
    """

    kind: Literal["generic"] = "generic"

    def coordinates(
        self, shape: tuple[int, ...], normalise: nn.Module, public: Batch | None, classes: int
    ) -> Coordinates:
        """Return the whitened cosine coefficients of a picture, or for other inputs the network's units."""
        return generic_coordinates(shape, normalise)


def generic_coordinates(shape: tuple[int, ...], normalise: nn.Module) -> Coordinates:
    """Return the coordinates in which examples are standard normal to somebody without data.

    Args:
        shape: the shape of one example's inputs; three dimensions are a picture.
        normalise: what the network does to its inputs first; only inputs that are no pictures depend on it.
    """
    return Cosines(shape) if len(shape) == 3 else StandardNormal(shape, normalise)


class Cosines(Whitened):
    """Whitened cosine coefficients of pictures.

    Args:
        shape: channels, height and width.
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        super().__init__(shape)
        channels, height, width = shape
        law = COLOUR if channels == len(OPPONENTS) else GREY
        variances = torch.stack([law.variances(direction, height, width) for direction in range(len(law.level))])
        self._mean, self._spread = law.mean, variances.sqrt().float()
        self._down, self._across = cosines(height).float(), cosines(width).float()
        self._opponents = torch.tensor(OPPONENTS) if law is COLOUR else None

    @property
    def width(self) -> int:
        """One number for each pixel and channel."""
        return math.prod(self.shape)

    def deviations(self) -> Tensor:
        """Return the root mean square over pixels that a unit of each coordinate changes, (width,)."""
        channels, height, width = self.shape
        return (self._spread / math.sqrt(height * width)).expand(channels, -1, -1).flatten()

    def steps(self) -> Tensor:
        """Return at most 1, less for coarse cosines, so that a unit step changes pixels by at most `STRIDE`."""
        return (STRIDE / self.deviations()).clamp_max(1.0)

    def decode(self, z: Tensor, targets: Tensor) -> Tensor:
        """Return the pictures with these coefficients."""
        spread, down, across = (constant.to(z.device, z.dtype) for constant in (self._spread, self._down, self._across))
        images = down.T @ (z.reshape(-1, *self.shape) * spread) @ across
        if self._opponents is not None:
            images = torch.einsum("dc,ndhw->nchw", self._opponents.to(z.device, z.dtype), images)
        return images + self._mean

    def encode(self, inputs: Tensor, targets: Tensor) -> Tensor:
        """Return the coefficients of pictures."""
        images = inputs - self._mean
        spread, down, across = (
            constant.to(images.device, images.dtype) for constant in (self._spread, self._down, self._across)
        )
        if self._opponents is not None:
            images = torch.einsum("dc,nchw->ndhw", self._opponents.to(images.device, images.dtype), images)
        return (down @ images @ across.T / spread).flatten(1)


class StandardNormal(NetworkUnits):
    """The network's units, in which inputs that are no pictures count as standard normal."""

    whitened: ClassVar[bool] = True

    def penalty(self, z: Tensor, inputs: Tensor) -> Tensor:
        """Return half the squared length of the coordinates."""
        return 0.5 * z.square().sum()


def cosines(side: int) -> Tensor:
    """Return the orthonormal discrete cosine transform (DCT-II) as a matrix, a row for each frequency.

    Example:
        >>> basis = cosines(8)
        >>> torch.allclose(basis @ basis.T, torch.eye(8, dtype=torch.float64))
        True
    """
    place = torch.arange(side, dtype=torch.float64)
    basis = (math.pi / side * (place + 0.5) * place[:, None]).cos() * math.sqrt(2 / side)
    basis[0] /= math.sqrt(2)
    return basis
