"""Clustering: gradients fall into two groups by themselves; nothing says which group is which."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from leaktight.attacks.label_attack import LabelAttack
from leaktight.core.threat import Hints

# Entries that the axis is found from: a batch of 65,536 rows of 128, whose Gram matrix takes some fifty milliseconds.
_ENTRIES = 2**23
_ITERATIONS = 100


class Clustering(LabelAttack):
    r"""Split the gradients of a step in two along the line on which they spread most, without knowing any label.

    In \(g_i = (\tilde p_i - y_i) \nabla h(a_i)\) positives and negatives lie on opposite sides of zero, as far as
    \(\nabla h\) points the same way for all examples. The line is the leading eigenvector w of \(\sum_i g_i g_i^T\),
    not centred, for zero is what divides the classes, and

    .. math:: r_i = \langle g_i, w \rangle .

    An eigenvector has no sign, so which side is positive stays unknown, in each step anew: the reading is
    \(0.5 + |AUC - 0.5|\).

    Args:
        layer: `cut`; `first`, the first layer that learns; a layer's name; or `all`.

    Example:
        >>> rows = torch.tensor([[2.0, 0.1], [1.5, 0.0], [-0.2, 0.1], [-0.3, 0.0]])
        >>> scores = Clustering().score(rows, Hints(torch.tensor([]), torch.tensor([])))
        >>> (scores > 0).tolist() in ([True, True, False, False], [False, False, True, True])
        True

    Differs from the paper: It has no such attack; it speaks of the class of all methods that rest on the two
    distributions of gradients.

    References:
        Li et al., Label Leakage and Protection in Two-party Split Learning, 2021, Section 3.1.
    """

    kind: Literal["clustering"] = "clustering"

    @property
    def signed(self) -> bool:
        """Never: an eigenvector may point either way."""
        return False

    def score(self, rows: Tensor, hints: Hints) -> Tensor:
        """Return the places on the line."""
        return rows @ leading_direction(rows)


def leading_direction(rows: Tensor) -> Tensor:
    """Return the unit vector along which rows are longest together, by power iteration on the smaller Gram matrix.

    Of more than 8 million entries, evenly spaced rows decide. Rows of zeros have no such vector: zeros come back.

    Args:
        rows: one vector for each example.

    Example:
        >>> leading_direction(torch.tensor([[3.0, 0.0], [-4.0, 0.0], [0.0, 1.0]])).abs().tolist()
        [1.0, 0.0]
    """
    if not rows.numel():
        return rows.new_zeros(rows.shape[1])
    step = -(-rows.numel() // _ENTRIES)
    few = rows[::step]
    wide = few.shape[1] > len(few)
    gram = few @ few.T if wide else few.T @ few
    tiny = torch.finfo(rows.dtype).tiny
    gram = gram / gram.abs().max().clamp_min(tiny)
    # From the longest row or column on: never orthogonal to all that counts.
    way = gram[gram.diagonal().argmax()]
    for _ in range(_ITERATIONS):
        way = gram @ way
        way = way / way.norm().clamp_min(tiny)
    direction: Tensor = few.T @ way if wide else way
    return direction.div(direction.norm().clamp_min(tiny))
