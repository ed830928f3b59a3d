"""Directions: an example whose gradient points the way of a known positive's is likely positive too."""

from __future__ import annotations

import abc
from typing import Literal, final

import torch
from pydantic import Field
from torch import Tensor

from leaktight.attacks.label_attack import LabelAttack, cosines, mean_direction
from leaktight.core.threat import HINTS, Hints, Knows


class KnownPositive(LabelAttack):
    """Scores each example of a step by its likeness to the first known positive.

    Write `compare`. The known example is not scored; a step in which none is known is left out.
    """

    @property
    def needs(self) -> frozenset[Knows]:
        """Hints."""
        return frozenset({Knows.HINTS})

    @abc.abstractmethod
    def compare(self, rows: Tensor, known: Tensor) -> Tensor:
        """Return one score for each row, given that of the known positive."""

    @final
    def score(self, rows: Tensor, hints: Hints) -> Tensor | None:
        """Return the comparisons; None if no positive is known."""
        known = self.used_positions(hints)
        return self.compare(rows, rows[known[0]]) if len(known) else None

    @final
    def used_positions(self, hints: Hints) -> Tensor:
        """Return the first known positive."""
        return hints.of(1)[:1]


class Direction(KnownPositive):
    r"""Score each example by the cosine of its gradient with that of one known positive of the same step.

    In \(g_i = (\tilde p_i - y_i) \nabla h(a_i)\) the factor is negative for every positive and positive for every
    negative. As far as \(\nabla h\) points the same way for all examples (exactly so if the label party has a linear
    top), for the known positive k

    .. math:: r_i = \frac{\langle g_i, g_k \rangle}{\|g_i\|_2 \, \|g_k\|_2}

    is 1 for positives and -1 for negatives, however sure the model is. The known example is not scored; a step in which
    none is known is left out.

    Args:
        layer: `cut`; `first`, the first layer that learns; a layer's name; or `all`.

    Example:
        >>> import torch
        >>> from leaktight.core.threat import Hints
        >>> known = Hints(torch.tensor([0]), torch.tensor([1]))
        >>> Direction().score(torch.tensor([[2.0, 0.0], [0.5, 0.0], [-1.0, 0.0]]), known).tolist()
        [1.0, 1.0, -1.0]

    Differs from the paper: It names the class of methods and has no such attack; the published code has. There the
    known positive's gradient comes from a noise-free pass that no feature party can make, here it is the one that was
    received; and there the known example is scored.

    References:
        Li et al., Label Leakage and Protection in Two-party Split Learning, 2021, Section 3, and its published code
        (cosine).
    """

    kind: Literal["direction"] = "direction"

    def compare(self, rows: Tensor, known: Tensor) -> Tensor:
        """Return the cosines."""
        return cosines(rows, mean_direction(known[None]))


class InnerProduct(KnownPositive):
    r"""Score each example by the inner product of its gradient with that of one known positive of the same step.

    .. math:: r_i = \langle g_i, g_k \rangle

    It has the sign of the cosine that `direction` takes, and the length that `gradient_norm` takes: among examples that
    point the same way it ranks those first that the model is least sure of. The known example is not scored; a step in
    which none is known is left out.

    Args:
        layer: `cut`; `first`, the first layer that learns; a layer's name; or `all`.

    Example:
        >>> import torch
        >>> from leaktight.core.threat import Hints
        >>> known = Hints(torch.tensor([0]), torch.tensor([1]))
        >>> InnerProduct().score(torch.tensor([[2.0, 0.0], [0.5, 0.0], [-1.0, 0.0]]), known).tolist()
        [4.0, 1.0, -2.0]

    Differs from the paper: It names the class of methods and has no such attack; the published code has, with the known
    positive's gradient from a noise-free pass and the known example among those scored.

    References:
        Li et al., Label Leakage and Protection in Two-party Split Learning, 2021, Section 3, and its published code
        (inner product).
    """

    kind: Literal["inner_product"] = "inner_product"

    def compare(self, rows: Tensor, known: Tensor) -> Tensor:
        """Return the inner products."""
        return rows @ known


class FewHints(LabelAttack):
    r"""Score each example by how far its gradient points from the known negatives' way to the known positives'.

    With \(u_i = g_i / \|g_i\|_2\), the known positives \(K_1\) and the known negatives \(K_0\) of the same step,

    .. math:: r_i = \langle u_i, w \rangle, \qquad
        w = \frac{1}{|K_1|} \sum_{k \in K_1} u_k - \frac{1}{|K_0|} \sum_{k \in K_0} u_k,

    without the second sum if no negative is used. With one positive and no negative it is `direction`; more of them
    average noise away. Known examples are not scored; a step in which fewer positives are known uses those, and one in
    which none is known is left out.

    Args:
        hints: how many known positives are used in each step, 1 to 5; more is stronger.
        negatives: how many known negatives, 0 to 5; more is stronger.
        layer: `cut`; `first`, the first layer that learns; a layer's name; or `all`.

    Example:
        >>> known = Hints(torch.tensor([0, 2]), torch.tensor([1, 0]))
        >>> FewHints(negatives=1).score(torch.tensor([[2.0, 0.0], [0.5, 0.0], [-1.0, 0.0], [0.0, 1.0]]), known).tolist()
        [2.0, 2.0, -2.0, 0.0]

    Differs from the paper: It has no such attack; the published code has, with 1, 3 and 5 hints, scored by the distance
    to the nearest hint or the inner product with the longest. It leaves hinted examples in the evaluated set, which
    flatters the attack.

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
        positive, negative = self._hinted_positions(hints)
        if not len(positive):
            return None
        way = mean_direction(rows[positive])
        if len(negative):
            way = way - mean_direction(rows[negative])
        return cosines(rows, way)

    def used_positions(self, hints: Hints) -> Tensor:
        """Return all known examples that are used."""
        return torch.cat(self._hinted_positions(hints))

    def _hinted_positions(self, hints: Hints) -> tuple[Tensor, Tensor]:
        return hints.of(1)[: self.hints], hints.of(0)[: self.negatives]
