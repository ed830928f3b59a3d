"""Where a search starts."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from leaktight.core.errors import InvalidValue
from leaktight.core.random import Stream
from leaktight.core.task import Batch

InitialName = Literal["randn", "uniform", "zeros", "pattern", "class_means", "prior", "features"]


def initial_points(name: InitialName, rows: int, shape: tuple[int, ...], rng: Stream) -> Tensor:
    """Return starting points (rows, *shape) in the units that the network sees.

    `randn` is standard normal, `uniform` lies in [-1, 1), `zeros` is the mean image, `pattern` repeats one small random
    patch over each image (Wei et al. 2020). Class means take more than a shape: see `class_means`.

    Args:
        name: which kind.
        rows: how many.
        shape: the shape of one.
        rng: where chance comes from.

    Example:
        >>> patch = initial_points("pattern", 1, (3, 8, 8), torch.Generator().manual_seed(0))
        >>> torch.equal(patch[..., :4, :4], patch[..., 4:, 4:])
        True
    """
    if name in ("class_means", "prior", "features"):
        raise InvalidValue(f"A start at `{name}` must be made from more than a shape. Got nothing else.")
    if name == "zeros":
        return torch.zeros(rows, *shape)
    if name == "uniform":
        return 2 * torch.rand(rows, *shape, generator=rng) - 1
    if name == "pattern" and len(shape) >= 2:
        return _pattern(rows, shape, rng)
    return torch.randn(rows, *shape, generator=rng)


def class_means(public: Batch, labels: Tensor, restarts: int, rng: Stream) -> Tensor:
    """Return starting points (victims * restarts, examples, *shape) in natural units: what an example of its class looks like.

    The first of a victim's starts is the mean public example of each label. A mean is one point, so that further ones are single
    public examples of the label, drawn with replacement. A label that no public example has counts as any.

    Args:
        public: examples of the same kind that anyone knows, at least one.
        labels: (victims, examples), as read or given.
        restarts: how many starts each victim gets, at least 1.
        rng: where the draws come from.

    Example:
        >>> public = Batch(torch.tensor([[0.0], [1.0], [4.0]]), torch.tensor([0, 0, 1]))
        >>> class_means(public, torch.tensor([[0, 1, 2]]), 1, torch.Generator()).flatten().tolist()
        [0.5, 4.0, 1.6666666269302368]

    References: Gao et al. 2021, section 6, whose attacker starts at "class representatives".
    """
    own = {label: public.inputs[public.labels == label] for label in torch.unique(labels).tolist()}
    own = {label: examples if len(examples) else public.inputs for label, examples in own.items()}

    def start(label: int, first: bool) -> Tensor:
        examples = own[label]
        return examples.mean(0) if first else examples[int(torch.randint(len(examples), (), generator=rng))]

    rows = [(row, restart == 0) for row in labels.tolist() for restart in range(restarts)]
    return torch.stack([torch.stack([start(label, first) for label in row]) for row, first in rows])


def _pattern(rows: int, shape: tuple[int, ...], rng: Stream, side: int = 4) -> Tensor:
    *leading, height, width = shape
    patch = torch.randn(rows, *leading, side, side, generator=rng)
    repeats = [1] * (1 + len(leading)) + [-(-height // side), -(-width // side)]
    return patch.repeat(*repeats)[..., :height, :width]
