"""Gradient norm: the longer an example's gradient, the likelier it is of the rarer class."""

from __future__ import annotations

from typing import Literal

from torch import Tensor

from leaktight.attacks.label_attack import LabelAttack
from leaktight.core.threat import Hints


class GradientNorm(LabelAttack):
    r"""Score each example by the length of its gradient, from the feature party's seat, without knowing any label.

    The gradient at the cut is \(g_i = (\tilde p_i - y_i) \nabla h(a_i)\) with \(\tilde p_i\) the predicted probability
    of a positive. Where positives are rare, a model is less sure of them throughout training, so that

    .. math:: r_i = \|g_i\|_2 = |\tilde p_i - y_i| \, \|\nabla h(a_i)\|_2

    is larger for them. Where negatives are rare it is the other way round, and the score is \(-r_i\). Which class is
    rare is seldom a secret: clicks and defaults are. An attacker who does not know it tells the two groups apart but
    not which is which; the reading then is \(0.5 + |AUC - 0.5|\).

    Args:
        rare: the class with fewer examples, as anyone knows beforehand: `positive`, `negative` or `unknown`. The wrong
            one gives an AUC below a half.
        layer: `cut`; `first`, the first layer that learns; a layer's name; or `all`.

    Example:
        >>> import torch
        >>> from leaktight.core.threat import Hints
        >>> nobody = Hints(torch.tensor([], dtype=torch.long), torch.tensor([]))
        >>> GradientNorm().score(torch.tensor([[3.0, 4.0], [0.0, 1.0]]), nobody).tolist()
        [5.0, 1.0]

    Differs from the paper: There positives are rare; the settings `negative` and `unknown` are ours. The published code
    scores a layer of one unit by its signed gradient; here by the length too.

    References:
        Li et al., Label Leakage and Protection in Two-party Split Learning, 2021, Section 2.2 and, for layers before
        the cut, Fig. 2(b).
    """

    kind: Literal["gradient_norm"] = "gradient_norm"
    rare: Literal["positive", "negative", "unknown"] = "positive"

    @property
    def signed(self) -> bool:
        """Whether it is known which class is rare."""
        return self.rare != "unknown"

    @property
    def steady(self) -> bool:
        """Always: the longer rows are those of the rare class in every message."""
        return True

    def score(self, rows: Tensor, hints: Hints) -> Tensor:
        """Return the norms, or their opposites."""
        norms: Tensor = rows.norm(dim=1)
        return -norms if self.rare == "negative" else norms
