"""Selective sharing: which parameters a participant takes from the server, and which of its changes it hands in."""

from __future__ import annotations

import dataclasses
import math
from fractions import Fraction
from typing import Literal

import torch
from torch import Tensor

from leaktight.core.draws import Draws
from leaktight.core.local import Local
from leaktight.core.message import Tensors

Choice = Literal["largest", "random"]


@dataclasses.dataclass(frozen=True)
class Sharing:
    r"""How a participant of the collaborative framework takes part.

    These are \(\theta_d\), \(\theta_u\) and \(\gamma\) of its meta-parameters.

    With the server's parameters \(w\), the participant's own \(v\), and \(s\), what it last had of the server with its
    own updates added, it trains from

    .. math:: v_i \leftarrow w_i \text{ if } i \in \mathrm{top}_{\lceil \theta_d n \rceil}(|w - s|), \text{ else } v_i,

    so that \(|w - s|\) is what others changed since it last had an entry. Of its change \(u\) it hands in
    \(\lceil \theta_u n \rceil\) entries, each bounded to \([-\gamma, \gamma]\); the others go out as zero. It remembers
    \(v\) and \(s\) in `local.memory["download"]`, by wire name, if it does not take everything anyway.

    Args:
        download: \(\theta_d\), in (0, 1]; 1 takes everything.
        upload: \(\theta_u\), in (0, 1]; 1 hands in everything.
        choice: which entries go out: those with the `largest` change, or `random` ones.
        clip: \(\gamma\), above 0; None bounds nothing.

    Example:
        >>> sharing = Sharing(upload=0.5, clip=2.0)
        >>> update = {"weight": torch.tensor([3.0, -1.0]), "bias": torch.tensor([0.5, -1.5])}
        >>> sharing.select_upload(update, Local("client-0", seed=0))
        {'weight': tensor([2., 0.]), 'bias': tensor([ 0.0000, -1.5000])}

    Differs from the paper: which entries "changed most" is by how far, not by how often they were updated. The server
    hands out all parameters and the participant leaves some of them aside, so that whoever sits in its seat sees more
    than it takes over.
    """

    download: float = 1.0
    upload: float = 1.0
    choice: Choice = "largest"
    clip: float | None = None

    def select_download(self, served: Tensors, local: Local) -> dict[str, Tensor]:
        """Return the parameters to train from; a participant that has none yet takes all."""
        kept = local.memory.get("download")
        if self.download == 1 or kept is None:
            return dict(served)
        own, seen = kept["own"], kept["seen"]
        masks = largest({name: (tensor - seen[name]).abs() for name, tensor in served.items()}, self.download)
        return {name: torch.where(masks[name], tensor, own[name]) for name, tensor in served.items()}

    def select_upload(self, update: Tensors, local: Local) -> dict[str, Tensor]:
        """Return what is handed in of an update, by wire name."""
        upload = dict(update)
        if self.upload < 1:
            magnitudes = {name: tensor.abs() for name, tensor in update.items()}
            if self.choice == "random":
                draws = local.named_draws("upload", local.round)
                magnitudes = {name: _random_magnitudes(tensor, draws) for name, tensor in update.items()}
            masks = largest(magnitudes, self.upload)
            upload = {
                name: torch.where(masks[name], tensor, torch.zeros_like(tensor)) for name, tensor in update.items()
            }
        if self.clip is None:
            return upload
        return {name: tensor.clamp(-self.clip, self.clip) for name, tensor in upload.items()}

    def remember(self, served: Tensors, start: Tensors, end: Tensors, sent: Tensors, local: Local) -> None:
        """Keep what the next download is compared with.

        Args:
            served: what the server handed out.
            start: what the participant trained from.
            end: where it arrived.
            sent: the update that went out; a tensor that is not in it did not change the server.
            local: whose memory it is kept in.
        """
        if self.download == 1:
            return
        before = local.memory.get("download", {"seen": served})["seen"]
        taken = {name: torch.where(start[name] == tensor, tensor, before[name]) for name, tensor in served.items()}
        seen = {name: tensor + sent[name] if name in sent else tensor.clone() for name, tensor in taken.items()}
        local.memory["download"] = {"own": {name: tensor.clone() for name, tensor in end.items()}, "seen": seen}


def largest(magnitudes: Tensors, share: float) -> dict[str, Tensor]:
    """Return masks of the largest entries over all tensors together: a share of them, rounded up.

    Args:
        magnitudes: numbers of at least 0, by name.
        share: in (0, 1]; it counts as the decimal number that it prints as.

    Example:
        >>> largest({"weight": torch.tensor([1.0, 4.0]), "bias": torch.tensor([3.0])}, 0.5)
        {'weight': tensor([False,  True]), 'bias': tensor([True])}
    """
    entries = torch.cat([tensor.flatten() for tensor in magnitudes.values()])
    chosen = torch.zeros_like(entries, dtype=torch.bool)
    chosen[entries.topk(math.ceil(Fraction(repr(share)) * len(entries)), sorted=False).indices] = True
    parts = torch.split(chosen, [tensor.numel() for tensor in magnitudes.values()])
    return {name: part.view_as(tensor) for (name, tensor), part in zip(magnitudes.items(), parts, strict=True)}


def _random_magnitudes(tensor: Tensor, draws: Draws) -> Tensor:
    # In double precision no two of a million draws are equal, so that all entries have the same chance.
    return draws.uniforms(tensor.shape, torch.float64).to(tensor.device)
