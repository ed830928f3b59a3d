"""Halves: a network cut in two, for a party that has features and a party that has labels."""

from __future__ import annotations

import dataclasses
from collections import OrderedDict

import torch
from torch import Tensor, nn

from leaktight.core.draws import Draws, public_draws
from leaktight.core.errors import InvalidValue, did_you_mean
from leaktight.core.secure import SecretKey
from leaktight.core.task import Normalise
from leaktight.data.columns import Columns
from leaktight.models.network import Network
from leaktight.models.tabular import Wide

Statistics = tuple[tuple[float, ...], tuple[float, ...]]


class Top(nn.Module):
    """The label party's half: the layers after the cut, plus a wide part for columns that the label party holds itself.

    Args:
        deep: from activations to one score for each class.
        wide: from the label party's own rows to scores that are added; None if it holds none.
    """

    def __init__(self, deep: nn.Module, wide: nn.Module | None = None) -> None:
        super().__init__()
        self.deep, self.wide = deep, wide

    def forward(self, activations: Tensor, own: Tensor) -> Tensor:
        """Return the scores of each class."""
        scores: Tensor = self.deep(activations)
        return scores if self.wide is None else scores + self.wide(own)


@dataclasses.dataclass(frozen=True)
class Halves:
    """A network cut in two.

    Args:
        bottom: the feature party's layers, by name, from its inputs to the activations at the cut.
        top: the label party's half.
        shape: the shape of one example's activations.
    """

    bottom: nn.Sequential
    top: Top
    shape: tuple[int, ...]


def halves(
    network: Network,
    inputs: Columns | tuple[int, ...],
    classes: int,
    seed: int | SecretKey,
    *,
    cut: str = "",
    own: Columns | None = None,
    statistics: Statistics | None = None,
    own_statistics: Statistics | None = None,
) -> Halves:
    """Return a network cut in two. Each half's initial weights come from a stream of its own, so neither tells of the other's.

    Two parties that trust each other less than one process trusts itself each call it with a seed of their own, and keep their half.

    Args:
        network: any network whose body is a sequence of layers; with an empty cut, any network at all.
        inputs: what the feature party's rows hold, or the shape of its images.
        classes: how many classes there are; at least 2.
        seed: what the initial weights derive from; a key, if nobody else may be able to draw them.
        cut: the name of the last layer before the cut, such as `relu3`; empty cuts between body and head.
        own: what the label party's rows hold; None or no columns leaves the wide part out.
        statistics: mean and standard deviation of each of the feature party's columns or channels, known to it; None leaves inputs as they are.
        own_statistics: the same for the label party's columns.

    Raises:
        InvalidValue: the network has no such layer, or does not take such inputs.

    Example:
        >>> from leaktight.models.mlp import MLP
        >>> found = halves(MLP(hidden=(8, 4)), (6,), classes=2, seed=0, cut="relu1")
        >>> [name for name, _ in found.bottom.named_children()], found.shape
        (['flatten', 'linear1', 'relu1'], (8,))
    """
    before, _, _ = _parts(network, inputs, classes, _initial(seed, "bottom"), cut)
    _, after, head = _parts(network, inputs, classes, _initial(seed, "top"), cut)
    if statistics is not None:
        before = OrderedDict([("normalise", Normalise(*statistics)), *before.items()])
    bottom = nn.Sequential(before)
    with _initial(seed).initialise():
        wide: nn.Module | None = Wide(own, classes) if own is not None and len(own) else None
    if wide is not None and own_statistics is not None:
        wide = nn.Sequential(OrderedDict(normalise=Normalise(*own_statistics), linear=wide))
    shape = (len(inputs),) if isinstance(inputs, Columns) else inputs
    with torch.no_grad():
        activations = bottom(torch.zeros(1, *shape))
    deep = nn.Sequential(OrderedDict(body=nn.Sequential(after), head=head))
    return Halves(bottom, Top(deep, wide), tuple(activations.shape[1:]))


_Layers = OrderedDict[str, nn.Module]


def _initial(seed: int | SecretKey, *names: str) -> Draws:
    if isinstance(seed, SecretKey):
        return seed.derive("initial weights", *names).draws()
    return public_draws(seed, *names)


def _parts(
    network: Network, inputs: Columns | tuple[int, ...], classes: int, draws: Draws, cut: str
) -> tuple[_Layers, _Layers, nn.Module]:
    """Return the layers before the cut, those after it, and the head."""
    with draws.initialise():
        made = network.of_columns(inputs, classes) if isinstance(inputs, Columns) else network.parts(inputs, classes)
    body, head = made
    layers = OrderedDict(body.named_children()) if isinstance(body, nn.Sequential) else OrderedDict(body=body)
    return *_cut(network, layers, cut), head


def _cut(network: Network, layers: _Layers, cut: str) -> tuple[_Layers, _Layers]:
    names = list(layers)
    if cut and cut not in layers:
        raise InvalidValue(
            f"The `cut` must be a layer of {network.kind}'s body. Got {cut!r} instead. {did_you_mean(cut, names)}"
        )
    kept = names.index(cut) + 1 if cut else len(names)
    before = OrderedDict((name, layers[name]) for name in names[:kept])
    after = OrderedDict((name, layers[name]) for name in names[kept:])
    if not any(True for layer in before.values() for _ in layer.parameters()):
        learned = next((name for name, layer in layers.items() if any(True for _ in layer.parameters())), None)
        if learned is None:
            raise InvalidValue(
                f"{network.kind} must have a layer before its head that learns. Got none; give it a hidden layer."
            )
        raise InvalidValue(
            f"The `cut` must leave the feature party something to learn. Got {cut!r} instead; cut after `{learned}`."
        )
    return before, after
