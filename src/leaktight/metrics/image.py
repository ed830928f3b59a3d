"""Image: how close a guessed example comes to the true one, pixel by pixel and as a person sees it.

PSNR and SSIM score what a person would see, so guesses are first cut to [0, 1] as a screen would; they apply to images
alone. Relative error applies to any data and cuts images alike, unless it is told not to. MSE scores the numbers as
guessed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal

import torch
from torch import Tensor

from leaktight.core.errors import InvalidValue
from leaktight.core.metric import Direction, Quantity
from leaktight.metrics.comparison import Comparison
from leaktight.metrics.pairing import is_image

PSNR_CAP = 100.0
"""The PSNR of identical images, in dB: an error too small for single precision to tell from none."""

UNCLIPPED = "rmse_unclipped"
"""The reading of a relative error of guesses as they are."""

_STEP = 1 / 255
# SSIM's windows: 11 pixels wide with a standard deviation of 1.5, both in proportion where the image is smaller.
_RADIUS, _SIGMA = 5, 0.3
_C1, _C2 = 0.01**2, 0.03**2


def mse(guess: Tensor, truth: Tensor) -> Tensor:
    """Return each example's mean squared error.

    Example:
        >>> mse(torch.tensor([[0.5, 1.0]]), torch.tensor([[0.5, 0.0]]))
        tensor([0.5000])
    """
    return (guess - truth).square().flatten(1).mean(1)


def rmse_relative(guess: Tensor, truth: Tensor) -> Tensor:
    r"""Return each example's error relative to its size, \(\lVert guess - truth \rVert / \lVert truth \rVert\).

    A truth that is zero everywhere has no relative error; its norm is taken as that of the darkest image that is not
    black (1/255 in every place), so that the value stays finite.

    Example:
        >>> rmse_relative(torch.tensor([[3.0, 0.0]]), torch.tensor([[3.0, 4.0]]))
        tensor([0.8000])
    """
    error: Tensor = torch.linalg.vector_norm((guess - truth).flatten(1), dim=1)
    size: Tensor = torch.linalg.vector_norm(truth.flatten(1), dim=1)
    darkest = _STEP * math.sqrt(truth[:1].numel())
    return error / torch.where(size > 0, size, torch.full_like(size, darkest))


def psnr(guess: Tensor, truth: Tensor) -> Tensor:
    r"""Return each image's peak signal-to-noise ratio in dB for pixels in [0, 1], \(-10 \log_{10} MSE\), at most 100.

    Example:
        >>> psnr(torch.full((1, 1, 2, 2), 0.1), torch.zeros(1, 1, 2, 2))
        tensor([20.])
    """
    return -10 * torch.log10(mse(guess, truth).clamp_min(10 ** (-PSNR_CAP / 10)))


def ssim(guess: Tensor, truth: Tensor) -> Tensor:
    r"""Return each image's structural similarity, the mean over windows and channels.

    .. math:: \frac{(2 \mu_g \mu_t + c_1)(2 \sigma_{gt} + c_2)}
        {(\mu_g^2 + \mu_t^2 + c_1)(\sigma_g^2 + \sigma_t^2 + c_2)}

    with Gaussian windows of 11 x 11 pixels (standard deviation 1.5), c1 = 0.01², c2 = 0.03². Only windows that lie
    wholly inside the image count, as in the paper's own program and scikit-image. An image with a side below 11 gets
    the largest odd window that fits, with its standard deviation in proportion; a side below 3 has no window and is an
    error.

    Example:
        >>> image = torch.linspace(0, 1, 144, dtype=torch.float64).view(1, 1, 12, 12)
        >>> round(ssim(image, image).item(), 4), ssim(1 - image, image).item() < 0
        (1.0, True)

    References:
        Wang, Bovik, Sheikh and Simoncelli, Image Quality Assessment: From Error Visibility to Structural Similarity,
        2004.
    """
    radius = _window_radius(truth.shape[1:])
    if radius < 1:
        raise InvalidValue(
            f"An image for SSIM must have sides of at least 3 pixels. Got the shape {tuple(truth.shape[1:])} instead."
        )
    # A Gaussian window is one along the height times one along the width.
    down, across = (_windows(side, radius).to(truth) for side in truth.shape[-2:])

    def local(images: Tensor) -> Tensor:
        return down @ images @ across.T

    means = local(guess), local(truth)
    product = means[0] * means[1]
    power = means[0].square() + means[1].square()
    covariance = local(guess * truth) - product
    variances = local(guess.square() + truth.square()) - power
    likeness = (2 * product + _C1) * (2 * covariance + _C2) / ((power + _C1) * (variances + _C2))
    return likeness.flatten(1).mean(1)


def _windows(side: int, radius: int) -> Tensor:
    """Return a matrix whose rows are the weights of every window that lies wholly inside a side."""
    offsets = torch.arange(side) - torch.arange(radius, side - radius)[:, None]
    weights = torch.exp(-0.5 * (offsets.double() / (_SIGMA * radius)).square()) * (offsets.abs() <= radius)
    return weights / weights.sum(1, keepdim=True)


def _window_radius(shape: Sequence[int]) -> int:
    return min(_RADIUS, (min(shape[-2:]) - 1) // 2)


class PSNR(Comparison):
    """Peak signal-to-noise ratio in dB of guessed images cut to [0, 1]: the mean over images of each image's `psnr`.

    20 dB is a root mean squared error of a tenth of the pixel range, 40 dB of a hundredth; identical images count as
    100 dB.

    Differs from the paper: Gao et al. (2021) score against the transformed images alone; here the originals count too.

    Example:
        >>> PSNR().measure(torch.zeros(1, 1, 8, 8), torch.full((1, 1, 8, 8), 0.1))
        tensor([20.])

    References:
        Hore and Ziou, Image Quality Metrics: PSNR vs. SSIM, 2010.
        Gao et al., Privacy-preserving Collaborative Learning with Automatic Transformation Search, 2021, table 1.
    """

    kind: Literal["psnr"] = "psnr"
    title: ClassVar[str] = "PSNR"
    unit: ClassVar[str] = "dB"
    digits: ClassVar[int | None] = 1
    leaks: ClassVar[Direction] = "high"
    clamp: ClassVar[bool] = True

    def measure(self, guess: Tensor, truth: Tensor) -> Tensor:
        """Return each image's PSNR in dB."""
        return psnr(guess, truth)

    def applies(self, shape: Sequence[int]) -> bool:
        """Apply to images: elsewhere there is no peak to compare with."""
        return is_image(shape)


class SSIM(Comparison):
    """Structural similarity in [-1, 1] of guessed images cut to [0, 1]: the mean over images of each image's `ssim`.

    Example:
        >>> image = torch.rand(1, 3, 16, 16, generator=torch.Generator().manual_seed(0))
        >>> round(SSIM().measure(image, image).item(), 4)
        1.0
    """

    kind: Literal["ssim"] = "ssim"
    title: ClassVar[str] = "SSIM"
    digits: ClassVar[int | None] = 2
    leaks: ClassVar[Direction] = "high"
    clamp: ClassVar[bool] = True

    def measure(self, guess: Tensor, truth: Tensor) -> Tensor:
        """Return each image's SSIM."""
        return ssim(guess, truth)

    def applies(self, shape: Sequence[int]) -> bool:
        """Apply to images that hold at least one window."""
        return is_image(shape) and _window_radius(shape) >= 1


class MSE(Comparison):
    """Mean squared error of the guess as it is, in the data's own units.

    Example:
        >>> MSE().measure(torch.tensor([[0.0, 2.0]]), torch.tensor([[0.0, 0.0]]))
        tensor([2.])
    """

    kind: Literal["mse"] = "mse"
    title: ClassVar[str] = "MSE"
    leaks: ClassVar[Direction] = "low"

    def measure(self, guess: Tensor, truth: Tensor) -> Tensor:
        """Return each example's mean squared error."""
        return mse(guess, truth)

    def applies(self, shape: Sequence[int]) -> bool:
        """Apply to any data."""
        return True


class RelativeRMSE(Comparison):
    """Error of the guess, relative to the size of the truth; the distance of reconstruction in PPC and CAP.

    Dark images (many zeros, as in MNIST) give values above 1 even for harmless errors. A search that runs away on a
    noisy gradient gives values in the thousands, and then a mean says nothing but that: `clip` bounds them.

    Args:
        clip: whether guessed images are cut to [0, 1] before pairing and scoring, as anyone would who looks at them.
            False takes them as they are, and names the reading `rmse_unclipped`: it tells how far a search ran away.

    Differs from the paper: guessed and true examples are paired one to one within a message first, which the paper does
    not say; a truth that is zero everywhere gets a finite value. The paper does not say whether it clips, but on MNIST
    it can hardly have: a clipped guess is off by about 3.1 there at most, on average (the negative of each image), and
    Table 7 has CAPs of 3.38 to 4.65. Clipped values are not to be compared with that table.

    Example:
        >>> RelativeRMSE().measure(torch.zeros(1, 4), torch.ones(1, 4))
        tensor([1.])

    References:
        Fan et al., Rethinking Privacy Preserving Deep Learning: How to Evaluate and Thwart Privacy Attacks, 2020,
        sections 2.1 and 4.1 (rMSE), appendix, Table 7.
    """

    kind: Literal["rmse_relative"] = "rmse_relative"
    title: ClassVar[str] = "relative error"
    leaks: ClassVar[Direction] = "low"
    clip: bool = True

    @classmethod
    def quantities(cls) -> Mapping[str, Quantity]:
        """Return what it reads, clipped or not."""
        return {**super().quantities(), UNCLIPPED: Quantity("relative error, unclipped", leaks=cls.leaks)}

    @property
    def clamps(self) -> bool:
        """As `clip` says."""
        return self.clip

    @property
    def reading(self) -> str:
        """The name of its reading, by `clip`: the two are not the same number."""
        return self.kind if self.clip else UNCLIPPED

    def measure(self, guess: Tensor, truth: Tensor) -> Tensor:
        """Return each example's relative error, of guesses as they are given."""
        return rmse_relative(guess, truth)

    def applies(self, shape: Sequence[int]) -> bool:
        """Apply to any data."""
        return True
