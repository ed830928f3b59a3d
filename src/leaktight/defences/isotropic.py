"""Isotropic noise on cut gradients, as large as the longest row asks for."""

from __future__ import annotations

import math
from typing import ClassVar, Literal

from pydantic import Field
from torch import Tensor

from leaktight.core.channel import Channel
from leaktight.core.defence import Strength
from leaktight.core.local import Local
from leaktight.core.message import Message, Tensors
from leaktight.core.task import Task
from leaktight.defences.cut_gradient import CutDefence, Rows, as_message, gaussian_channel, rows_of, with_rows


class IsotropicNoise(CutDefence):
    r"""Add the same Gaussian noise to every row of a cut gradient, for whoever wants the baseline of label protection.

    Without it row \(g_i \in \mathbb{R}^d\) of example \(i\) goes out as it is; with it

    .. math:: \tilde g_i = g_i + \frac{r \max_j \|g_j\|}{\sqrt d} z_i, \qquad z_i \sim N(0, I_d).

    The noise of a row has the expected squared norm \(r^2 \max_j \|g_j\|^2\). It knows nothing about labels.

    Where messages really leave, the noise comes from a secret key (docs/secrets.md).

    Args:
        ratio: \(r\), the noise's length relative to the batch's longest row, in [0, inf); 0 is off, more is stronger.

    Example:
        >>> import torch
        >>> from leaktight.core.message import Kind
        >>> rows = torch.zeros(1000, 4)
        >>> rows[0, 0] = 3.0
        >>> message = Message(Kind.CUT_GRADIENT, "label-party", "feature-party", 0, {"cut": rows})
        >>> sent = IsotropicNoise(ratio=2.0).on_message(message, Local("label-party", seed=0))
        >>> round(sent.tensors["cut"][1:].std().item(), 1)  # 2 * 3 / sqrt(4)
        3.0

    Differs from the paper: none known. The paper's table has 25 times the largest squared norm as variance, which is
    ratio 5; the published code sweeps ratios from 0.25 to 25.

    References:
        Li et al., "Label Leakage and Protection in Two-party Split Learning", 2021, section 4 and figure 2(c).
    """

    kind: Literal["isotropic_noise"] = "isotropic_noise"
    strength: ClassVar[Strength] = Strength("ratio", "up", 0.0)
    ratio: float = Field(default=5.0, ge=0)

    @property
    def promise(self) -> Literal["noise"] | None:
        """Noise, unless it is off."""
        return None if self.ratio == 0 else "noise"

    def channel(self, task: Task) -> Channel:
        """State nothing of gradients and updates, which it refuses, unless it is off."""
        return Channel(complete=self.ratio == 0)

    def cut_channel(self, gradients: Tensors, labels: Tensor) -> Channel:
        """State the same Gaussian law for every row, as large as the longest asks for."""
        rows = rows_of(as_message(gradients), self.kind)
        if self.ratio == 0 or not rows.matrix.numel():
            return Channel()
        return gaussian_channel(gradients, rows.norms.new_full(rows.norms.shape, self._std(rows) ** 2))

    def on_message(self, message: Message, local: Local) -> Message:
        """Add noise to every row."""
        rows = rows_of(message, self.kind)
        if self.ratio == 0 or not rows.matrix.numel():
            return message
        std = self._std(rows)
        return with_rows(
            message,
            local.draws.many_normals(tuple(rows.matrix.shape), rows.matrix).mul_(std).add_(rows.matrix),
            self.kind,
        )

    def _std(self, rows: Rows) -> float:
        return self.ratio * rows.norms.max().item() / math.sqrt(rows.dimensions)
