"""Inner product: direction and length at once, against one known positive."""

from __future__ import annotations

from typing import Literal

from torch import Tensor

from leaktight.attacks.known_positive import KnownPositive


class InnerProduct(KnownPositive):
    r"""Score each example by the inner product of its gradient with that of one known positive of the same step.

    .. math:: r_i = \langle g_i, g_k \rangle

    It has the sign of the cosine that `direction` takes, and the length that `gradient_norm` takes: among examples that point the same
    way it ranks those first that the model is least sure of. The known example is not scored; a step in which none is known is left out.

    Args:
        layer: `cut`; `first`, the first layer that learns; a layer's name; or `all`.

    Example:
        >>> import torch
        >>> from leaktight.core.threat import Hints
        >>> known = Hints(torch.tensor([0]), torch.tensor([1]))
        >>> InnerProduct().score(torch.tensor([[2.0, 0.0], [0.5, 0.0], [-1.0, 0.0]]), known).tolist()
        [4.0, 1.0, -2.0]

    Differs from the paper: It names the class of methods and has no such attack; the published code has, with the known positive's
    gradient from a noise-free pass and the known example among those scored.

    References:
        Li et al., Label Leakage and Protection in Two-party Split Learning, 2021, Section 3, and its published code (inner product).
    """

    kind: Literal["inner_product"] = "inner_product"

    def compare(self, rows: Tensor, known: Tensor) -> Tensor:
        """Return the inner products."""
        return rows @ known
