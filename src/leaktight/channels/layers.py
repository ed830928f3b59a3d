"""Layers: stages that act on some of them, or leave them out."""

from __future__ import annotations

import dataclasses

from leaktight.core.channel import Belief, Mask, Stage, push_all
from leaktight.core.message import layer_of


@dataclasses.dataclass(frozen=True)
class OnLayers(Stage):
    """Stages that see the tensors of some layers, as a message of their own; the others stay as they are.

    Args:
        layers: wire names without their last part, as `body.linear1`.
        stages: what is done to them, in order.

    Example:
        >>> import torch
        >>> from leaktight.channels.noise import AddNoise
        >>> belief = Belief({"body.weight": torch.zeros(2), "head.weight": torch.zeros(2)})
        >>> stage = OnLayers(("head",), (AddNoise(std=2.0),))
        >>> [stage.push(belief).noise_of(name).variance for name in belief.means]
        [0.0, 4.0]
    """

    layers: tuple[str, ...]
    stages: tuple[Stage, ...]

    def push(self, belief: Belief) -> Belief:
        """Push the tensors of these layers through the stages, and keep the order of all."""
        inner = [name for name in belief.means if layer_of(name) in self.layers]
        if not inner:
            return belief
        pushed = push_all(self.stages, belief.only(inner))
        kept = [name for name in belief.means if name not in inner or name in pushed.means]
        outer = belief.only([name for name in belief.means if name not in inner])
        means = {**outer.means, **pushed.means}
        joined = dataclasses.replace(
            belief,
            means={name: means[name] for name in kept},
            noise={**outer.noise, **pushed.noise},
            masks={**outer.masks, **pushed.masks},
        )
        return _without(joined, [name for name in inner if name not in pushed.means])


@dataclasses.dataclass(frozen=True)
class Drop(Stage):
    """Layers that do not go out at all.

    Args:
        layers: which layers; empty for all.
        parts: which of their tensors, by the last part of the name; empty for all.

    Example:
        >>> import torch
        >>> belief = Belief({"body.weight": torch.zeros(2), "head.weight": torch.zeros(2)})
        >>> list(Drop(("head",)).push(belief).means)
        ['body.weight']
    """

    layers: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()

    def drops(self, name: str) -> bool:
        """Return whether a tensor does not go out."""
        inside = not self.layers or layer_of(name) in self.layers
        return inside and (not self.parts or name.rpartition(".")[2] in self.parts)

    def push(self, belief: Belief) -> Belief:
        """Leave their tensors out."""
        gone = [name for name in belief.means if self.drops(name)]
        return _without(belief.only([name for name in belief.means if name not in gone]), gone)


def _without(belief: Belief, gone: list[str]) -> Belief:
    """Return a belief whose masks leave out tensors that are gone: how many of the others go out is then unknown."""
    return dataclasses.replace(belief, masks={name: _narrow(mask, gone) for name, mask in belief.masks.items()})


def _narrow(mask: Mask, gone: list[str]) -> Mask:
    left = tuple(name for name in mask.group if name not in gone)
    before = None if mask.before is None else _narrow(mask.before, gone)
    return dataclasses.replace(mask, group=left, count=mask.count if left == mask.group else 0, before=before)
