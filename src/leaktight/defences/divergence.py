r"""Divergence: how well two Gaussian classes can be told apart, with and without noise.

It is computed in plain floating-point numbers.

Gradients of the negatives are \(N(\bar g^{(0)}, u I)\), those of the positives \(N(\bar g^{(1)}, v I)\), in \(d\)
dimensions. Each class \(k\) gets noise of variance \(\lambda_1^{(k)}\) along the difference of the means and
\(\lambda_2^{(k)}\) in every direction across it.
"""

from __future__ import annotations

import dataclasses
import math

from leaktight.core.errors import InvalidValue


@dataclasses.dataclass(frozen=True)
class Classes:
    r"""What distinguishes two classes of gradients for an observer.

    Args:
        negatives: \(u\), the variance of the negatives' gradients per coordinate, at least 0.
        positives: \(v\), that of the positives.
        gap: \(g = \|\Delta g\|^2\), the squared distance of the two means, at least 0.
        dimensions: \(d\), at least 1.
        share: \(p\), the share of positives, in (0, 1).
    """

    negatives: float
    positives: float
    gap: float
    dimensions: int
    share: float

    def __post_init__(self) -> None:
        for name in ("negatives", "positives", "gap"):
            if not 0 <= getattr(self, name) < math.inf:
                raise InvalidValue(
                    f"The `{name}` of two classes must be in [0, inf). Got {getattr(self, name)} instead."
                )
        if self.dimensions < 1:
            raise InvalidValue(f"The `dimensions` of two classes must be at least 1. Got {self.dimensions} instead.")
        if not 0 < self.share < 1:
            raise InvalidValue(f"The `share` of positives must be in (0, 1). Got {self.share} instead.")


@dataclasses.dataclass(frozen=True)
class ClassNoise:
    r"""The variances of the noise for one class.

    Args:
        along: \(\lambda_1\), along the difference of the means.
        across: \(\lambda_2\), in each of the other directions; at most `along`.
    """

    along: float = 0.0
    across: float = 0.0

    def trace(self, dimensions: int) -> float:
        """Return the trace of the covariance: the expected squared norm of the noise."""
        return self.along + (dimensions - 1) * self.across


@dataclasses.dataclass(frozen=True)
class NoisePair:
    """The noise for both classes."""

    negatives: ClassNoise = ClassNoise()
    positives: ClassNoise = ClassNoise()


def power(classes: Classes, noise: NoisePair) -> float:
    r"""Return the noise's mean power \(p \, \mathrm{tr} \Sigma_1 + (1 - p) \, \mathrm{tr} \Sigma_0\)."""
    p, d = classes.share, classes.dimensions
    return p * noise.positives.trace(d) + (1 - p) * noise.negatives.trace(d)


def sumkl(classes: Classes, noise: NoisePair) -> float:
    r"""Return the sum of the two KL divergences between the classes with their noise; it may be infinite.

    With \(a = \lambda_2^{(0)} + u\), \(b = \lambda_2^{(1)} + v\), \(A = \lambda_1^{(0)} + u\),
    \(B = \lambda_1^{(1)} + v\) it is

    .. math:: \tfrac12 \Big( (d - 1) \frac{(a - b)^2}{a b} + \frac{(A - B)^2}{A B} + \frac gA + \frac gB \Big),

    which is the paper's objective halved, minus \(d\), but loses no digits where the classes are alike.

    Example:
        >>> sumkl(Classes(1.0, 2.0, 3.0, 4, 0.25), NoisePair())
        3.25
    """
    u, v = classes.negatives, classes.positives
    low, high = noise.negatives.along + u, noise.positives.along + v
    across = 0.0
    if classes.dimensions > 1:
        across = (classes.dimensions - 1) * _ratio(noise.negatives.across + u, noise.positives.across + v)
    return 0.5 * (across + _ratio(low, high) + _over(classes.gap, low) + _over(classes.gap, high))


def detection_error(divergence: float) -> float:
    r"""Return the error that every detector makes at least, as the mean of FPR and FNR.

    It is \(\max(0, \tfrac12 - \tfrac14 \sqrt{\mathrm{sumKL}})\).

    Example:
        >>> detection_error(0.16), detection_error(0.0), detection_error(math.inf)
        (0.4, 0.5, 0.0)
    """
    return max(0.0, 0.5 - 0.25 * math.sqrt(divergence))


def allowed_sumkl(bound: float) -> float:
    r"""Return the largest sumKL, \((2 - 4 L)^2\), under which every detector errs at least by \(L\).

    Example:
        >>> round(allowed_sumkl(0.4), 12)
        0.16
    """
    return (2 - 4 * bound) ** 2


def _ratio(one: float, other: float) -> float:
    """Return (one - other)^2 / (one * other); two classes without any spread are alike."""
    if one == other:
        return 0.0
    if one == 0 or other == 0:
        return math.inf
    return abs(one - other) / one * (abs(one - other) / other)


def _over(size: float, spread: float) -> float:
    if size == 0:
        return 0.0
    return size / spread if spread else math.inf
