"""Halves: a network cut in two, for a party that has features and a party that has labels."""

from __future__ import annotations

import dataclasses
import math
from collections import OrderedDict

import torch
from torch import Tensor, nn

from leaktight.core.draws import Draws, Root
from leaktight.core.errors import InvalidValue, did_you_mean
from leaktight.core.task import Normalise
from leaktight.core.training_mode import TrainingLayer
from leaktight.data.columns import Columns
from leaktight.models.network import Network
from leaktight.models.tabular import Wide

_COMPUTED = 1 << 16
"""How many numbers an example may have for its activations to be computed, to learn their shape.

Torch takes a second to learn it without computing.
"""
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
    root: Root,
    *,
    cut: str = "",
    own: Columns | None = None,
    statistics: Statistics | None = None,
    own_statistics: Statistics | None = None,
) -> Halves:
    """Return a network cut in two.

    Each half's initial weights come from a stream of its own, so neither reveals anything about the other's.

    Two parties that trust each other less than one process trusts itself each call it with a seed of their own, and
    keep their half.

    Args:
        network: any network whose body is a sequence of layers; with an empty cut, any network at all.
        inputs: what the feature party's rows hold, or the shape of its images.
        classes: how many classes there are; at least 2.
        root: what the initial weights derive from; a key, if nobody else may be able to draw them.
        cut: the name of the last layer before the cut, such as `relu3`; empty cuts between body and head.
        own: what the label party's rows hold; None or no columns leaves the wide part out.
        statistics: mean and standard deviation of each of the feature party's columns or channels, known to it; None
            leaves inputs as they are.
        own_statistics: the same for the label party's columns.

    Raises:
        InvalidValue: the network has no such layer, or does not take such inputs.

    Example:
        >>> from leaktight.core.draws import PublicSeed
        >>> from leaktight.models.mlp import MLP
        >>> found = halves(MLP(hidden=(8, 4)), (6,), classes=2, root=PublicSeed(0), cut="relu1")
        >>> [name for name, _ in found.bottom.named_children()], found.shape
        (['flatten', 'linear1', 'relu1'], (8,))
    """
    bottom, shape = feature_half(network, inputs, classes, root, cut=cut, statistics=statistics)
    top, _ = label_half(network, inputs, classes, root, cut=cut, own=own, own_statistics=own_statistics)
    return Halves(bottom, top, shape)


def feature_half(
    network: Network,
    inputs: Columns | tuple[int, ...],
    classes: int,
    root: Root,
    *,
    cut: str = "",
    statistics: Statistics | None = None,
) -> tuple[nn.Sequential, tuple[int, ...]]:
    """Return the feature party's half as `halves` makes it, and the shape of one example's activations.

    The rest is not kept.

    Args:
        network: as for `halves`, likewise the rest.
        inputs: what the feature party's rows hold, or the shape of its images.
        classes: how many classes there are.
        root: what the initial weights derive from.
        cut: the last layer of this half.
        statistics: mean and standard deviation of each column or channel.
    """
    before, _, _ = _parts(network, inputs, classes, root.derive("bottom").draws(), cut)
    if statistics is not None:
        before = OrderedDict([("normalise", Normalise(*statistics)), *before.items()])
    bottom = nn.Sequential(before)
    return bottom, _shape(bottom, inputs)


def label_half(
    network: Network,
    inputs: Columns | tuple[int, ...],
    classes: int,
    root: Root,
    *,
    cut: str = "",
    own: Columns | None = None,
    own_statistics: Statistics | None = None,
) -> tuple[Top, tuple[int, ...]]:
    """Return the label party's half as `halves` makes it, and the shape of one example's activations.

    The rest is not kept.

    Args:
        network: as for `halves`, likewise the rest.
        inputs: what the feature party's rows hold, or the shape of its images.
        classes: how many classes there are.
        root: what the initial weights derive from.
        cut: the last layer of the other half.
        own: what the label party's rows hold.
        own_statistics: mean and standard deviation of each of its columns.

    Example:
        >>> from leaktight.core.draws import PublicSeed
        >>> from leaktight.models.mlp import MLP
        >>> top, shape = label_half(MLP(hidden=(8, 4)), (6,), classes=2, root=PublicSeed(0), cut="relu1")
        >>> [name for name, _ in top.deep.body.named_children()], shape
        (['linear2', 'relu2'], (8,))
    """
    before, after, head = _parts(network, inputs, classes, root.derive("top").draws(), cut)
    shape = _shape(nn.Sequential(before), inputs)
    with root.draws().initialise():
        wide: nn.Module | None = Wide(own, classes) if own is not None and len(own) else None
    if wide is not None and own_statistics is not None:
        wide = nn.Sequential(OrderedDict(normalise=Normalise(*own_statistics), linear=wide))
    return Top(nn.Sequential(OrderedDict(body=nn.Sequential(after), head=head)), wide), shape


def _shape(bottom: nn.Sequential, inputs: Columns | tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape of one example's activations; for a large one nothing is computed, where the layers allow it."""
    shape = (1, *((len(inputs),) if isinstance(inputs, Columns) else inputs))
    with torch.no_grad():
        try:
            if math.prod(shape) > _COMPUTED:
                tensors = {
                    name: tensor.to("meta") for name, tensor in (*bottom.named_parameters(), *bottom.named_buffers())
                }
                return tuple(torch.func.functional_call(bottom, tensors, torch.zeros(shape, device="meta")).shape[1:])
        # A person's own layer may look at the numbers themselves.
        except (NotImplementedError, RuntimeError):
            pass
        return tuple(bottom(torch.zeros(shape)).shape[1:])


_Layers = OrderedDict[str, nn.Module]


def _parts(
    network: Network, inputs: Columns | tuple[int, ...], classes: int, draws: Draws, cut: str
) -> tuple[_Layers, _Layers, nn.Module]:
    """Return the layers before the cut, those after it, and the head."""
    with draws.initialise():
        parts = network.of_columns(inputs, classes) if isinstance(inputs, Columns) else network.parts(inputs, classes)
    body, head = parts
    trained = [name for part in parts for name, layer in part.named_modules() if isinstance(layer, TrainingLayer)]
    if trained:
        raise InvalidValue(
            f"Split learning must treat each example by itself, and layer `{trained[0]}` is in training mode. Set "
            '`batch_norm = "eval"` (`--batch-norm eval`), and call `.eval()` on dropout.'
        )
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
