"""Noise on cut gradients that makes all rows as long as the longest, on average."""

from __future__ import annotations

import math
from typing import ClassVar, Literal

import torch
from torch import Tensor

from leaktight.core.channel import Channel
from leaktight.core.local import Local
from leaktight.core.message import Message, Tensors
from leaktight.defences.cut_gradient import CutDefence, Rows, as_message, gaussian_channel, rows_of, with_rows


class MaxNorm(CutDefence):
    r"""Stretch each row of a cut gradient by noise along itself until its expected squared norm is the longest row's.

    Without it row \(g_i\) of example \(i\) goes out as it is, and its length tells the label; with it

    .. math:: \tilde g_i = g_i + \sqrt{\max_j \|g_j\|^2 - \|g_i\|^2} \; \xi_i \frac{g_i}{\|g_i\|}, \qquad
        \xi_i \sim N(0, 1),

    so that \(E \|\tilde g_i\|^2\) is the same for all. It is aimed at the norm alone: each row keeps its line through
    the origin, whose slope may tell the label, and the longest row goes out as it is. It has no setting.

    Where messages really leave, the noise comes from a secret key (docs/secrets.md).

    Example:
        >>> from leaktight.core.message import Kind
        >>> rows = torch.cat([torch.tensor([[3.0, 4.0]]), torch.tensor([[0.3, 0.4]]).expand(5000, 2)])
        >>> message = Message(Kind.CUT_GRADIENT, "label-party", "feature-party", 0, {"cut": rows})
        >>> sent = MaxNorm().on_message(message, Local("label-party", seed=0)).tensors["cut"]
        >>> sent[0].tolist(), round(sent[1:].square().sum(1).mean().sqrt().item(), 1)
        ([3.0, 4.0], 5.0)

    Differs from the paper: it is not in the paper but in its authors' published code, where a row of zeros stays zero
    and so stands out; here such a row gets noise of the wanted length in a random direction.

    References:
        Li et al., "Label Leakage and Protection in Two-party Split Learning", 2021, published code (`expectation`).
    """

    kind: Literal["max_norm"] = "max_norm"
    title: ClassVar[str] = "max-norm"

    @property
    def promise(self) -> Literal["noise"]:
        """Noise, always."""
        return "noise"

    def cut_channel(self, gradients: Tensors, labels: Tensor) -> Channel:
        """State Gaussian noise along each row; in every direction for a row of zeros."""
        rows = rows_of(as_message(gradients), self.kind)
        if not rows.matrix.numel() or not rows.norms.any():
            return Channel()
        missing, longest = _mean_length(rows), rows.norms.max()
        stretch = missing / rows.norms
        empty = ~torch.isfinite(stretch)
        along = torch.where(empty, 0, stretch)[:, None] * rows.matrix
        return gaussian_channel(gradients, torch.where(empty, longest.square() / rows.dimensions, 0), along)

    def on_message(self, message: Message, local: Local) -> Message:
        """Add noise along every row."""
        rows = rows_of(message, self.kind)
        if not rows.matrix.numel() or not rows.norms.any():
            return message
        return with_rows(message, _stretch(rows, local), self.kind)


def _mean_length(rows: Rows) -> Tensor:
    """Return how long the noise of each row is on average."""
    longest = rows.norms.max()
    return ((longest - rows.norms) * (longest + rows.norms)).sqrt()


def _stretch(rows: Rows, local: Local) -> Tensor:
    longest = rows.norms.max()
    factors = local.draws.many_normals((len(rows),), rows.norms) * _mean_length(rows) / rows.norms
    # The length of zeros, and of what rounds to them, is no direction.
    empty = ~torch.isfinite(factors)
    sent = torch.where(empty, 0, factors)[:, None].add(1).mul(rows.matrix)
    if empty.any():
        count = int(empty.sum())
        sent[empty] = local.draws.many_normals((count, rows.dimensions), rows.matrix) * (
            longest / math.sqrt(rows.dimensions)
        )
    return sent
