"""Layer-wise pruning: in each tensor the smallest entries become zero."""

from __future__ import annotations

from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from leaktight.channels.largest import KeepLargest
from leaktight.core.channel import Channel
from leaktight.core.defence import Defence, Strength
from leaktight.core.effect import Effect
from leaktight.core.local import Local
from leaktight.core.message import Message
from leaktight.core.task import Task
from leaktight.defences.finite import finite
from leaktight.defences.magnitude import largest, whole_part


class Pruning(Defence):
    r"""Set the smallest entries of each tensor to zero, for whoever also wants smaller messages.

    Without it every entry of a tensor \(g\) of \(n\) entries goes out; with it the \(\lfloor r n \rfloor\) entries of
    smallest magnitude go out as zero and the others as they are:

    .. math:: \tilde g_i = g_i \; [\, g_i \text{ is among the } n - \lfloor r n \rfloor \text{ largest } |g| \,].

    Args:
        rate: \(r\), the share of each tensor that is zeroed, in [0, 1); 0 is off, more is stronger. At least one entry
            of a tensor always goes out. Of equal entries at the edge the first ones stay.

    Example:
        >>> from leaktight.core.message import Kind
        >>> message = Message(Kind.GRADIENT, "client-0", "server", 0, {"weight": torch.tensor([3.0, -1.0, 2.0, 0.5])})
        >>> Pruning(rate=0.5).on_message(message, Local("client-0", seed=0)).tensors["weight"]
        tensor([3., 0., 2., 0.])

    Differs from the paper: the number of zeros is exact also among equal entries, which the paper does not speak of. A
    layer's weight and bias are pruned apart. Nothing that was left out is kept for later; `top_k` can do that.

    References:
        Gao et al., "Privacy-preserving Collaborative Learning with Automatic Transformation Search", 2021, section 5.1
        (rates 0.7, 0.95, 0.99), after Dutta et al., "On the Discrepancy between the Theoretical Analysis and Practical
        Implementations of Compressed Communication for Distributed Deep Learning", 2019.
    """

    kind: Literal["pruning"] = "pruning"
    strength: ClassVar[Strength] = Strength("rate", "up", 0.0)
    rate: float = Field(default=0.9, ge=0, lt=1)

    @property
    def memoryless(self) -> bool:
        """It looks at nothing but the message."""
        return True

    @property
    def effects(self) -> frozenset[Effect]:
        """Entries that are pruned are zero."""
        return frozenset({"zeros"}) if self.rate else frozenset()

    def channel(self, task: Task) -> Channel:
        """State which entries of each tensor go out."""
        return Channel(message=(KeepLargest(self._count, "tensor"),)) if self.rate else Channel()

    def on_message(self, message: Message, local: Local) -> Message:
        """Zero the smallest entries of every tensor."""
        return finite(message, self.kind).map(self._prune)

    def _prune(self, tensor: Tensor) -> Tensor:
        count = self._count(tensor.numel())
        if count == tensor.numel():
            return tensor
        kept = largest(tensor.abs().flatten(), count).view(tensor.shape)
        return torch.where(kept, tensor, 0)

    def _count(self, entries: int) -> int:
        """Return how many of so many entries go out."""
        return entries - whole_part(self.rate, entries, up=False)
