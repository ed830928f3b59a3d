"""Gradient norm: the longer an example's gradient, the likelier it is positive."""

from __future__ import annotations

from typing import Literal

from torch import Tensor

from leaktight.attacks.label_scores import LabelAttack
from leaktight.core.threat import Hints


class GradientNorm(LabelAttack):
    r"""Score each example by the length of its gradient, from the feature party's seat, without knowing any label.

    The gradient at the cut is \(g_i = (\tilde p_i - y_i) \nabla h(a_i)\) with \(\tilde p_i\) the predicted probability of a positive. Where
    positives are rare, a model is less sure of them throughout training, so that

    .. math:: r_i = \|g_i\|_2 = |\tilde p_i - y_i| \, \|\nabla h(a_i)\|_2

    is larger for them. Where positives are the larger class it is the other way round, and the AUC lies below a half.

    Args:
        layer: `cut`; `first`, the first layer that learns; a layer's name; or `all`.

    Example:
        >>> import torch
        >>> from leaktight.core.threat import Hints
        >>> nobody = Hints(torch.tensor([], dtype=torch.long), torch.tensor([]))
        >>> GradientNorm().score(torch.tensor([[3.0, 4.0], [0.0, 1.0]]), nobody).tolist()
        [5.0, 1.0]

    Differs from the paper: none known. The published code scores a layer of one unit by its signed gradient; here by the length too.

    References:
        Li et al., Label Leakage and Protection in Two-party Split Learning, 2021, Section 2.2 and, for layers before the cut, Fig. 2(b).
    """

    kind: Literal["gradient_norm"] = "gradient_norm"

    def score(self, rows: Tensor, hints: Hints) -> Tensor:
        """Return the norms."""
        norms: Tensor = rows.norm(dim=1)
        return norms
