"""Direction: an example whose gradient points the way of a known positive's is likely positive too."""

from __future__ import annotations

from typing import Literal

from torch import Tensor

from leaktight.attacks.known_positive import KnownPositive
from leaktight.attacks.label_attack import cosines, mean_direction


class Direction(KnownPositive):
    r"""Score each example by the cosine of its gradient with that of one known positive of the same step.

    In \(g_i = (\tilde p_i - y_i) \nabla h(a_i)\) the factor is negative for every positive and positive for every negative. As far as
    \(\nabla h\) points the same way for all examples (exactly so if the label party has a linear top), for the known positive k

    .. math:: r_i = \frac{\langle g_i, g_k \rangle}{\|g_i\|_2 \, \|g_k\|_2}

    is 1 for positives and -1 for negatives, however sure the model is. The known example is not scored; a step in which none is known is
    left out.

    Args:
        layer: `cut`; `first`, the first layer that learns; a layer's name; or `all`.

    Example:
        >>> import torch
        >>> from leaktight.core.threat import Hints
        >>> known = Hints(torch.tensor([0]), torch.tensor([1]))
        >>> Direction().score(torch.tensor([[2.0, 0.0], [0.5, 0.0], [-1.0, 0.0]]), known).tolist()
        [1.0, 1.0, -1.0]

    Differs from the paper: It names the class of methods and has no such attack; the published code has. There the known positive's gradient
    comes from a noise-free pass that no feature party can make, here it is the one that was received; and there the known example is scored.

    References:
        Li et al., Label Leakage and Protection in Two-party Split Learning, 2021, Section 3, and its published code (cosine).
    """

    kind: Literal["direction"] = "direction"

    def compare(self, rows: Tensor, known: Tensor) -> Tensor:
        """Return the cosines."""
        return cosines(rows, mean_direction(known[None]))
