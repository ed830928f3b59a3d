"""Bound: in how many cases an attack comes back with an image of a stated quality."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

from pydantic import Field
from torch import Tensor

from leaktight.core.errors import InvalidValue
from leaktight.core.metric import Direction, Reading
from leaktight.metrics.comparison import Comparison
from leaktight.metrics.image import psnr
from leaktight.metrics.pairing import is_image

EPSILON = 20.0
"""The PSNR in dB that counts as reconstructed unless said otherwise: an error of a tenth of the pixel range."""


class ReconstructionStatement(Comparison):
    r"""The share of images recovered at a PSNR of at least epsilon: 1 - delta of an (epsilon, delta) attack.

    .. math:: \Pr[PSNR(x^*, x) \ge \epsilon] \ge 1 - \delta

    The reading's value is the measured probability, hence the least delta that the statement holds with is 1 - value.

    Args:
        epsilon: the quality in dB, in (0, 100]; the larger, the harder for an attack. The default of 20 dB is an error
            of a tenth of the pixel range.

    Differs from the paper: it fixes no epsilon; the probability is taken over the images measured, after one-to-one
    pairing; besides the images that the gradient saw (`used`, the x-hat of Definition 2) the originals (`raw`) are
    scored.

    Example:
        >>> ReconstructionStatement(epsilon=25)
        ReconstructionStatement(kind='reconstruction_statement', epsilon=25.0)

    References:
        Gao et al., Privacy-preserving Collaborative Learning with Automatic Transformation Search, 2021, Definitions 1,
        2.
    """

    kind: Literal["reconstruction_statement"] = "reconstruction_statement"
    title: ClassVar[str] = "images recognised"
    unit: ClassVar[str] = "%"
    digits: ClassVar[int | None] = 0
    leaks: ClassVar[Direction] = "high"
    clamp: ClassVar[bool] = True
    share: ClassVar[bool] = True
    epsilon: float = Field(EPSILON, gt=0, le=100)

    def measure(self, guess: Tensor, truth: Tensor) -> Tensor:
        """Return 1 for each image that comes back at epsilon or better, else 0."""
        return (psnr(guess, truth) >= self.epsilon).double()

    def applies(self, shape: Sequence[int]) -> bool:
        """Apply to images: elsewhere there is no PSNR."""
        return is_image(shape)


def statement(reading: Reading, epsilon: float = EPSILON) -> str:
    r"""Say a reading of `reconstruction_statement` in words.

    Args:
        reading: what the metric returned.
        epsilon: the quality in dB that it was measured at.

    Example:
        >>> measured = Reading(name="reconstruction_statement", value=0.75, low=0.41, high=0.93, n=8, against="raw")
        >>> print(*statement(measured).split(": ", 1), sep=":\n")
        The attack is a (20 dB, 0.25)-reconstruction attack on the raw images:
        75 % of 8 came back at 20 dB or better (95 % interval: 41 % to 93 %).
    """
    if reading.name != "reconstruction_statement":
        raise InvalidValue(
            f"A statement needs a reading of `reconstruction_statement`. Got one of `{reading.name}` instead."
        )
    on = f" on the {reading.against} images" if reading.against else ""
    known = reading.low is not None and reading.high is not None
    interval = f" (95 % interval: {_percent(reading.low)} to {_percent(reading.high)})" if known else ""
    return (
        f"The attack is a ({epsilon:g} dB, {1 - reading.value:.2g})-reconstruction attack{on}: "
        f"{_percent(reading.value)} of {reading.n} came back at {epsilon:g} dB or better{interval}."
    )


def _percent(share: float | None) -> str:
    return "?" if share is None else f"{100 * share:.0f} %"
