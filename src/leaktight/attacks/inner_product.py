"""Inner product: direction and length at once, against one known positive."""

from __future__ import annotations

from typing import Literal

from torch import Tensor

from leaktight.attacks.label_scores import LabelAttack
from leaktight.core.threat import Hints, Knows


class InnerProduct(LabelAttack):
    r"""Score each example by the inner product of its gradient with that of one known positive of the same step.

    .. math:: r_i = \langle g_i, g_k \rangle

    It has the sign of the cosine that `direction` takes, and the length that `gradient_norm` takes: among examples that point the same
    way it ranks those first that the model is least sure of. The known example is not scored; a step in which none is known is left out.

    Args:
        layer: `cut`; `first`, the first layer that learns; a layer's name; or `all`.

    Example:
        >>> import torch
        >>> known = Hints(torch.tensor([0]), torch.tensor([1]))
        >>> InnerProduct().score(torch.tensor([[2.0, 0.0], [0.5, 0.0], [-1.0, 0.0]]), known).tolist()
        [4.0, 1.0, -2.0]

    Differs from the paper: It names the class of methods and has no such attack; the published code has, with the known positive's
    gradient from a noise-free pass and the known example among those scored.

    References:
        Li et al., Label Leakage and Protection in Two-party Split Learning, 2021, Section 3, and its published code (inner product).
    """

    kind: Literal["inner_product"] = "inner_product"

    @property
    def needs(self) -> frozenset[Knows]:
        """Hints."""
        return frozenset({Knows.HINTS})

    def score(self, rows: Tensor, hints: Hints) -> Tensor | None:
        """Return the inner products."""
        known = self.used(hints)
        return rows @ rows[known[0]] if len(known) else None

    def used(self, hints: Hints) -> Tensor:
        """Return the first known positive."""
        return hints.of(1)[:1]
