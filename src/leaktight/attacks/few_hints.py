"""Few hints: a handful of known examples give the direction in which the classes differ."""

from __future__ import annotations

from typing import Literal

import torch
from pydantic import Field
from torch import Tensor

from leaktight.attacks.label_attack import LabelAttack, cosines, mean_direction
from leaktight.core.threat import HINTS, Hints, Knows


class FewHints(LabelAttack):
    r"""Score each example by how far its gradient points away from those of known negatives and towards those of known positives.

    With \(u_i = g_i / \|g_i\|_2\), the known positives \(K_1\) and the known negatives \(K_0\) of the same step,

    .. math:: r_i = \langle u_i, w \rangle, \qquad w = \frac{1}{|K_1|} \sum_{k \in K_1} u_k - \frac{1}{|K_0|} \sum_{k \in K_0} u_k,

    without the second sum if no negative is used. With one positive and no negative it is `direction`; more of them average noise away.
    Known examples are not scored; a step in which fewer positives are known uses those, and one in which none is known is left out.

    Args:
        hints: how many known positives are used in each step, 1 to 5; more is stronger.
        negatives: how many known negatives, 0 to 5; more is stronger.
        layer: `cut`; `first`, the first layer that learns; a layer's name; or `all`.

    Example:
        >>> known = Hints(torch.tensor([0, 2]), torch.tensor([1, 0]))
        >>> FewHints(negatives=1).score(torch.tensor([[2.0, 0.0], [0.5, 0.0], [-1.0, 0.0], [0.0, 1.0]]), known).tolist()
        [2.0, 2.0, -2.0, 0.0]

    Differs from the paper: It has no such attack; the published code has, with 1, 3 and 5 hints, scored by the distance to the nearest hint
    or the inner product with the longest. It leaves hinted examples in the evaluated set, which flatters the attack.

    References:
        The published code of Li et al., Label Leakage and Protection in Two-party Split Learning, 2021 (hint attacks).
    """

    kind: Literal["few_hints"] = "few_hints"
    hints: int = Field(3, ge=1, le=HINTS)
    negatives: int = Field(0, ge=0, le=HINTS)

    @property
    def needs(self) -> frozenset[Knows]:
        """Hints."""
        return frozenset({Knows.HINTS})

    def score(self, rows: Tensor, hints: Hints) -> Tensor | None:
        """Return the projections on the difference of mean directions."""
        positive, negative = self._known(hints)
        if not len(positive):
            return None
        way = mean_direction(rows[positive])
        if len(negative):
            way = way - mean_direction(rows[negative])
        return cosines(rows, way)

    def used(self, hints: Hints) -> Tensor:
        """Return all known examples that are used."""
        return torch.cat(self._known(hints))

    def _known(self, hints: Hints) -> tuple[Tensor, Tensor]:
        return hints.of(1)[: self.hints], hints.of(0)[: self.negatives]
