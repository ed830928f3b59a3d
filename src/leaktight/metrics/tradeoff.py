"""Trade-off: what a defence costs and what it buys, as one curve over its strengths (PPC) and one number (CAP)."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from statistics import fmean
from typing import Literal

from leaktight.core.errors import InvalidValue
from leaktight.core.metric import Reading
from leaktight.statistics.interval import Interval

GREEN_BELOW = 1.0
"""The ratio below which the perturbation is larger than the gradient: the paper's green region."""
RED_ABOVE = 10.0
"""The ratio above which the paper's images come back almost whole: its red region, which starts at "tens"."""

Region = Literal["green", "white", "red"]


@dataclasses.dataclass(frozen=True)
class Point:
    """One point of a privacy-preserving characteristic: a defence at one strength under one attack.

    Args:
        accuracy: how well the defended model does, in [0, 1]; the higher, the better.
        distance: how far from the truth the attack ends, at least 0; the higher, the better for the data's owner.
        strength: the value of the defence's swept setting.
        ratio: the size of the gradient beside the perturbation; None if nothing was perturbed.
    """

    accuracy: Reading
    distance: Reading
    strength: float | None = None
    ratio: float | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.accuracy.value <= 1:
            raise InvalidValue(
                f"The `accuracy` of a Point must be a number in [0, 1]. Got {self.accuracy.value} instead."
            )
        if self.distance.value < 0:
            raise InvalidValue(
                f"The `distance` of a Point must be a number in [0, inf). Got {self.distance.value} instead."
            )


def calibrated_performance(accuracy: float, distance: float) -> float:
    r"""Return the calibrated performance \(Acc \cdot dist\): high only if the model is good and the attack is not.

    Args:
        accuracy: how well the defended model does, in [0, 1].
        distance: how far from the truth the attack ends, at least 0.

    Example:
        >>> calibrated_performance(0.5, 0.8)
        0.4

    References:
        Fan et al., Rethinking Privacy Preserving Deep Learning: How to Evaluate and Thwart Privacy Attacks, 2020,
        Definition 1.
    """
    return accuracy * distance


def cap(points: Sequence[Point]) -> float:
    r"""Return the calibrated averaged performance of a defence: the higher, the better the trade-off.

    .. math:: CAP = \frac{1}{n} \sum_m Acc_m \cdot dist_m

    It depends on which strengths were measured, so only defences swept over alike ranges of the ratio can be compared
    by it. A distance without an upper end, such as the relative error of dark images, may lift it above 1.

    Args:
        points: the characteristic, at least one point.

    Example:
        >>> accuracies = [Reading(name="accuracy", value=value) for value in (0.5, 0.25)]
        >>> cap([Point(accuracy, Reading(name="rmse_relative", value=0.8)) for accuracy in accuracies])
        0.30000000000000004

    References:
        Fan et al., Rethinking Privacy Preserving Deep Learning: How to Evaluate and Thwart Privacy Attacks, 2020, Eq.
        1.
    """
    if not points:
        raise InvalidValue("A calibrated averaged performance needs at least one point. Got none instead.")
    return fmean(calibrated_performance(point.accuracy.value, point.distance.value) for point in points)


def cap_interval(points: Sequence[Point]) -> Interval:
    r"""Return a cautious 95 % interval of the calibrated averaged performance; none if a reading has none.

    With \(h\) the distance from a value to the end of its interval on one side, the error of each product is that of
    two independent factors, for accuracy comes from test data and distance from victims,

    .. math:: \frac{1}{n} \sum_m \sqrt{(dist_m \, h^{Acc}_m)^2 + (Acc_m \, h^{dist}_m)^2} .

    Errors of different strengths are added as if they always had the same sign: all strengths share test data, victims
    and often the seed, so more points do not make the mean more certain. The lower end is never below 0.

    Args:
        points: the characteristic, at least one point.

    Example:
        >>> accuracy = Reading(name="accuracy", value=0.5, low=0.4, high=0.6)
        >>> distance = Reading(name="rmse_relative", value=1.0, low=0.9, high=1.3)
        >>> low, high = cap_interval([Point(accuracy, distance)] * 3)
        >>> round(low, 3), round(high, 3)
        (0.388, 0.68)
    """
    value = cap(points)
    below = [_error(point, "low") for point in points]
    above = [_error(point, "high") for point in points]
    known = [error for error in below + above if error is not None]
    if len(known) < 2 * len(points):
        return None, None
    return max(0.0, value - fmean(known[: len(points)])), value + fmean(known[len(points) :])


def _error(point: Point, end: Literal["low", "high"]) -> float | None:
    ends = [getattr(reading, end) for reading in (point.accuracy, point.distance)]
    if None in ends:
        return None
    accuracy, distance = point.accuracy.value, point.distance.value
    return math.hypot(distance * (ends[0] - accuracy), accuracy * (ends[1] - distance))


def region(ratio: float) -> Region:
    """Return the paper's region of a ratio: `green` below 1, `white` up to 10, `red` above.

    The colours say where a setting lies, not what an attack can do there.

    Args:
        ratio: the size of the gradient beside the perturbation, at least 0; infinite if nothing was perturbed.

    Differs from the paper: it lets the red region start at "tens", without a number; here at 10.

    Example:
        >>> region(0.5), region(1.0), region(10.0), region(11.0)
        ('green', 'white', 'white', 'red')

    References:
        Fan et al., Rethinking Privacy Preserving Deep Learning: How to Evaluate and Thwart Privacy Attacks, 2020,
        section 4.2.
    """
    _check(ratio)
    return "green" if ratio < GREEN_BELOW else "white" if ratio <= RED_ABOVE else "red"


def abscissa(ratio: float) -> float:
    r"""Return where a ratio lies on the axis of the paper's figures, \(\log_{10}(ratio + 1)\).

    Example:
        >>> abscissa(0), abscissa(99)
        (0.0, 2.0)

    References:
        Fan et al., Rethinking Privacy Preserving Deep Learning: How to Evaluate and Thwart Privacy Attacks, 2020,
        figure 5.
    """
    _check(ratio)
    return math.log10(ratio + 1)


def _check(ratio: float) -> None:
    if not ratio >= 0:
        raise InvalidValue(
            f"The `ratio` of gradient and perturbation must be a number in [0, inf]. Got {ratio} instead."
        )
