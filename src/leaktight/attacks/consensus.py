"""Consensus: candidates of the same victim are drawn towards each other."""

from __future__ import annotations

from typing import Literal

from pydantic import Field
from torch import Tensor

from leaktight.attacks.term import GroupTerm


class Consensus(GroupTerm):
    r"""Draw the candidates of a victim towards their mean: where several searches agree, they are more likely right.

    .. math:: \frac{w}{n} \lVert x - \bar x \rVert^2

    over the n numbers of a candidate, with \(\bar x\) the mean over the victim's candidates, which is taken for fixed.

    Args:
        weight: \(w\), above 0.

    Example:
        >>> import torch
        >>> inputs, owners = torch.tensor([[[0.0]], [[2.0]], [[5.0]]]), torch.tensor([0, 0, 1])
        >>> Consensus(weight=1.0).compare(inputs, owners)
        tensor([1., 1., 0.])

    Differs from the paper: no registration of shifted images before the mean.

    References: Yin et al. 2021, See through Gradients, section 3.3 (group consistency).
    """

    kind: Literal["consensus"] = "consensus"
    weight: float = Field(1.0, gt=0)

    def compare(self, inputs: Tensor, owners: Tensor) -> Tensor:
        """Return the weighted mean squared distance of each candidate from its victim's mean."""
        # Sums over rows of the same victim as a matrix product: it traces, and rows may leave at any time.
        same = (owners[:, None] == owners[None, :]).to(inputs.dtype)
        flat = inputs.flatten(1)
        means = (same @ flat / same.sum(1, keepdim=True)).detach()
        return self.weight * (flat - means).square().mean(1)
