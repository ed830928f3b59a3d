"""Top-k sharing: only the largest entries of a message go out."""

from __future__ import annotations

import dataclasses
from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from leaktight.channels.largest import KeepLargest
from leaktight.core.channel import Channel
from leaktight.core.defence import Defence, Strength
from leaktight.core.effect import Effect
from leaktight.core.errors import InvalidValue, Refusal
from leaktight.core.local import Local
from leaktight.core.message import Kind, Message, Tensors
from leaktight.core.task import Task
from leaktight.defences.finite import finite, finite_tensors
from leaktight.defences.magnitude import largest, whole_part


class TopK(Defence):
    r"""Share only the largest entries of a message; the others go out as zero.

    Without it all \(n\) entries of \(g\) go out; with it the \(k = \lceil \theta_u n \rceil\) entries of largest
    magnitude do:

    .. math:: \tilde g_i = (g_i + e_i + \sigma z_i) \; [\, i \in \mathrm{top}_k(|g + e|) \,], \qquad
        e \leftarrow (g + e) \text{ where it was not sent, else } 0,

    with noise \(\sigma z\), \(z \sim N(0, I)\), and residual \(e\) only if asked for. The choice itself is not private:
    which entries are large tells something about the data, noise or not.

    Args:
        share: \(\theta_u\), the share of entries that goes out, in (0, 1]; 1 is off, less is stronger.
        scope: `message` ranks all entries together, `tensor` takes the share of each tensor on its own.
        noise: \(\sigma\), standard deviation of Gaussian noise on the entries that go out, in [0, inf); more is
            stronger.
        residual: whether the party remembers what was not sent and adds it to its next message. More useful, and in the
            end everything goes out.

    Example:
        >>> tensors = {"weight": torch.tensor([3.0, -1.0, 2.0]), "bias": torch.tensor([-4.0])}
        >>> message = Message(Kind.GRADIENT, "client-0", "server", 0, tensors)
        >>> sent = TopK(share=0.5).on_message(message, Local("client-0", seed=0))
        >>> sent.tensors["weight"], sent.tensors["bias"]
        (tensor([3., 0., 0.]), tensor([-4.]))

    Differs from the paper: only the "largest values" rule, not the random choice above a threshold. The paper bounds
    each value by gamma and hides choice and values by the sparse vector technique with Laplace noise; here the noise is
    Gaussian, without bound and without epsilon. What stays back enters the residual only on request. The share
    downloaded (theta_d) is always 1.

    References:
        Shokri and Shmatikov, "Privacy-Preserving Deep Learning", 2015, section 5.2 (selective parameter sharing); the
        residual as in Aji and Heafield, "Sparse Communication for Distributed Gradient Descent", 2017, algorithm 1.
    """

    kind: Literal["top_k"] = "top_k"
    title: ClassVar[str] = "top-k"
    strength: ClassVar[Strength] = Strength("share", "down", 1.0)
    share: float = Field(default=0.1, gt=0, le=1)
    scope: Literal["message", "tensor"] = "message"
    noise: float = Field(default=0.0, ge=0)
    residual: bool = False

    @property
    def memoryless(self) -> bool:
        """Whether there is no residual of earlier messages."""
        return not self.residual

    @property
    def effects(self) -> frozenset[Effect]:
        """Entries that stay back are zero; its own noise is only on those that go out."""
        return frozenset({"zeros"}) if self.share < 1 else frozenset()

    def noise_norm(self, entries: int) -> float:
        """Return that of the noise on the entries that go out."""
        return float(self.noise * self._count(entries) ** 0.5)

    @property
    def states_channel(self) -> bool:
        """Whether there is no residual, of which nobody else knows."""
        return not self.residual

    def channel(self, task: Task) -> Channel:
        """State which entries go out; of a residual, that something is kept and added later, and no more."""
        if self.share == 1 and not self.noise:
            return Channel()
        return Channel(message=(KeepLargest(self._count, self.scope, self.noise),), complete=not self.residual)

    def on_message(self, message: Message, local: Local) -> Message:
        """Keep the largest entries, and what was left out at home if asked to."""
        finite(message, self.kind)
        owed = self._with_residual(message, local) if self.residual else message.tensors
        kept = self._masks(owed)
        if self.residual:
            local.memory["residual"] = {name: torch.where(kept[name], 0, tensor) for name, tensor in owed.items()}
        sent = {name: torch.where(kept[name], self._noisy(tensor, local), 0) for name, tensor in owed.items()}
        return finite(dataclasses.replace(message, tensors=sent), self.kind)

    def _noisy(self, tensor: Tensor, local: Local) -> Tensor:
        return tensor + self.noise * local.draws.normal_like(tensor) if self.noise else tensor

    def _masks(self, tensors: Tensors) -> dict[str, Tensor]:
        """Return for each tensor which of its entries go out."""
        flat = {name: tensor.abs().flatten() for name, tensor in tensors.items()}
        if self.scope == "message" and flat:
            together = self._largest_share(torch.cat(list(flat.values())))
            masks = torch.split(together, [row.numel() for row in flat.values()])
        else:
            masks = tuple(map(self._largest_share, flat.values()))
        return {name: mask.view(tensors[name].shape) for name, mask in zip(flat, masks, strict=True)}

    def _largest_share(self, magnitudes: Tensor) -> Tensor:
        return largest(magnitudes, self._count(magnitudes.numel()))

    def _count(self, entries: int) -> int:
        """Return how many of so many entries go out."""
        return whole_part(self.share, entries, up=True)

    def _with_residual(self, message: Message, local: Local) -> Tensors:
        """Return the message's tensors plus what earlier messages left out."""
        if message.kind not in (Kind.GRADIENT, Kind.UPDATE):
            raise Refusal(
                f"{self.kind} keeps a residual of gradients and updates, whose entries mean the same in every round. "
                f"Set `residual` to false for a message of kind {message.kind}."
            )
        residual: dict[str, Tensor] = local.memory.get("residual", {})
        for name, left in residual.items():
            if name not in message.tensors or message.tensors[name].shape != left.shape:
                raise InvalidValue(
                    f"The {message.kind} of {message.sender} must have a `{name}` of shape {tuple(left.shape)} like "
                    f"the one before it, of which {self.kind} keeps a residual."
                )
        owed = {
            name: tensor + residual[name].to(tensor) if name in residual else tensor
            for name, tensor in message.tensors.items()
        }
        return finite_tensors(owed, f"The residual of {message.sender} under {self.kind}")
