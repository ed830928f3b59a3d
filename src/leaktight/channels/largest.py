"""The largest entries: only they go out, the others as zero."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Literal

import torch

from leaktight.channels.typical import typical
from leaktight.core.channel import Belief, Mask, Noise, Stage


@dataclasses.dataclass(frozen=True)
class KeepLargest(Stage):
    """The entries of largest magnitude, of a whole message or of each tensor.

    Noise that was there before is in what is ranked. What comes after the mask starts at none.

    Args:
        count: how many of so many entries go out; the defence's own way to count.
        scope: `message` ranks all entries together, `tensor` those of each tensor.
        sent_std: the standard deviation of Gaussian noise on entries that go out.

    Example:
        >>> before = Belief({"weight": torch.tensor([3.0, -1.0, 2.0, 0.5])})
        >>> belief = KeepLargest(lambda entries: entries // 2).push(before)
        >>> belief.masks["weight"].count, belief.masks["weight"].edge
        (2, tensor(2.))
    """

    count: Callable[[int], int]
    scope: Literal["message", "tensor"] = "message"
    sent_std: float = 0.0

    def push(self, belief: Belief) -> Belief:
        """Put a mask on every tensor of which not all goes out."""
        names = tuple(belief.means)
        for group in (names,) if self.scope == "message" else tuple((name,) for name in names):
            belief = self._mask(belief, group) if group else belief
        return belief

    def _mask(self, belief: Belief, group: tuple[str, ...]) -> Belief:
        sent = Noise(self.sent_std**2)
        entries = sum(belief.means[name].numel() for name in group)
        count = self.count(entries)
        if count >= entries:
            added = {name: belief.noise_of(name) + sent for name in group}
            return dataclasses.replace(belief, noise={**belief.noise, **added})
        magnitudes = torch.cat([typical(belief, name).abs().flatten() for name in group])
        edge = torch.topk(magnitudes, count, sorted=False).values.min() if count else magnitudes.max() * 2 + 1
        masks = {}
        for name in group:
            ranked, before = belief.noise_of(name), belief.masks.get(name)
            mask = Mask(group, count, ranked, sent, edge, before)
            if before is not None and ranked.is_none:
                # Either mask may have left an entry out. What came of its own tensor passed both, so that is what
                # bounds it.
                mask = dataclasses.replace(mask, group=(name,), count=0)
            masks[name] = mask
        noise = {name: Noise() if name in group else belief.noise_of(name) for name in belief.means}
        return dataclasses.replace(belief, noise=noise, masks={**belief.masks, **masks})
