"""Label bounds: how well anybody can tell two classes apart, according to a defence, and the AUC that follows."""

from __future__ import annotations

import dataclasses
import math

from leaktight.core.errors import InvalidValue


@dataclasses.dataclass(frozen=True)
class LabelBound:
    r"""A lower bound L, stated for some passes, on every detector's mean of false positive and false negative rate.

    L bounds the total variation distance of the two classes' messages by \(1 - 2 L\). Divergences of independent
    messages add, and the bound on the distance grows as their root, so that t passes in place of the T for which it is
    stated leave

    .. math:: L_t = \max\left(0, \tfrac12 - (\tfrac12 - L) \sqrt{t / T}\right).

    Args:
        error: L, in [0, 0.5].
        passes: T, how many messages about each example it is stated for, at least 1.

    Example:
        >>> bound = LabelBound(0.4)
        >>> bound.ceiling(), round(bound.after(4), 6), bound.after(100)
        (0.68, 0.3, 0.0)

    References:
        Li et al., Label Leakage and Protection in Two-party Split Learning, 2021, theorem 1.
    """

    error: float
    passes: int = 1

    def __post_init__(self) -> None:
        if not 0 <= self.error <= 0.5 or self.passes < 1:
            raise InvalidValue(
                f"A label bound must have an error in [0, 0.5] over at least 1 pass. Got {self.error} over "
                f"{self.passes} instead."
            )

    def after(self, passes: int) -> float:
        """Return the error that is left after so many passes."""
        return max(0.0, 0.5 - (0.5 - self.error) * math.sqrt(passes / self.passes))

    def ceiling(self, passes: int | None = None) -> float:
        r"""Return the largest AUC after so many passes, by default those it is stated for.

        A ROC curve stays within \(TPR \le FPR + TV\), with \(TV = 1 - 2 L\), so that the area is at most
        \(1 - (1 - TV)^2 / 2\).
        """
        error = self.error if passes is None else self.after(passes)
        return round(1 - (2 * error) ** 2 / 2, 12)
