"""Batch reading: what a linear layer saw of each example, by peeling, then SPEAR, then the rows that mix least."""

from __future__ import annotations

import dataclasses

import torch
from torch import Tensor

from leaktight.attacks.linear_layer import LinearLayer
from leaktight.attacks.peeling import AGREES, FITS, Peeled, Spectrum, peel
from leaktight.attacks.spear import Disentangled, disentangle
from leaktight.core.random import Stream

LIKELY = 0.95
"""From which agreement on an example that SPEAR finds and cannot certify is answered before a row of the gradient."""
OUTSIDE = 0.05
"""How far outside of the box a row may lie that is taken for a mixture of examples."""


@dataclasses.dataclass(frozen=True)
class BatchReading:
    """What the layer saw of each example of a batch.

    Args:
        seen: what the layer saw, (examples, width + 1), the last entry 1; certified ones first.
        labels: the label of each, -1 where it is not known.
        certified: which are certified.
    """

    seen: Tensor
    labels: Tensor
    certified: Tensor


def read_batch(
    gradient: Tensor,
    layer: LinearLayer,
    examples: int,
    draws: int,
    rng: Stream,
    *,
    public: bool = True,
    noise: float = 0.0,
) -> BatchReading:
    """Read what a layer saw of each example behind its gradient.

    Args:
        gradient: [dL/dW | dL/db] of the mean loss, (units, width + 1).
        layer: the layer.
        examples: how many are behind the gradient, at least 1.
        draws: how many draws SPEAR may make each time it is asked.
        rng: where they come from.
        public: whether the loss may be the public one.
        noise: what is known of the standard deviation of the entries.
    """
    peeled, split = Peeled.nothing(gradient, examples, noise), None
    if layer.is_rectified(_samples(layer, rng)):
        while peeled.left:
            before = peeled.left
            peeled = peel(peeled, layer, public=True) if public else peeled
            # Also where the loss is taken for the public one: a sender may have another without saying so.
            peeled = peel(peeled, layer, public=False) if peeled.left == before else peeled
            if peeled.left and peeled.left == before:
                split = _disentangle(peeled, layer, draws, rng)
                peeled = _take_certified(peeled, split, layer, public=public)
            if peeled.left == before:
                break
    seen = _refine(peeled, gradient)
    rest = _fill(peeled, split, layer)
    unknown = torch.full((len(rest),), -1)
    certified = torch.arange(examples) < len(seen)
    return BatchReading(torch.cat([seen, rest]), torch.cat([peeled.labels, unknown]), certified)


def _samples(layer: LinearLayer, rng: Stream) -> Tensor:
    """Return vectors that a layer might see."""
    vectors = torch.randn(8, layer.weight.shape[1], generator=rng, dtype=torch.float64)
    vectors[:, -1] = 1
    return vectors


def _disentangle(peeled: Peeled, layer: LinearLayer, draws: int, rng: Stream) -> Disentangled | None:
    spectrum = peeled.spectrum()
    rows = spectrum.matrix[spectrum.matrix[:, -1] != 0]
    starts = rows / rows[:, -1:]
    return disentangle(spectrum, layer, starts @ layer.weight.T, draws, rng)


def _take_certified(peeled: Peeled, split: Disentangled | None, layer: LinearLayer, *, public: bool) -> Peeled:
    """Take out SPEAR's certified examples: by the public loss each for itself, by any loss all together."""
    if split is None or not len(split.seen):
        return peeled
    labels = torch.full((len(split.seen),), -1)
    passed = torch.full(
        (len(split.seen),), bool((split.agreement == 1).all()) and bool((layer.outside(split.seen) < FITS).all())
    )
    if public:
        slopes = peeled.weight * layer.slopes(split.seen)
        misfit, nearest = ((slopes - split.slopes[:, None]).norm(dim=2) / slopes.norm(dim=2).clamp(min=1e-300)).min(1)
        by_loss = misfit < 2 * AGREES
        labels, passed = torch.where(misfit < FITS, nearest, labels), passed | by_loss
    return peeled.take(split.seen[passed], split.slopes[passed], labels[passed], peeled.weight)


def _refine(peeled: Peeled, gradient: Tensor) -> Tensor:
    """Return what was certified, by all rows at once where nothing else is behind the gradient."""
    if peeled.left or not len(peeled.seen):
        return peeled.seen
    solution: Tensor = torch.linalg.lstsq(peeled.slopes.T, gradient).solution
    steady = ((solution - peeled.seen).abs().amax(1) < FITS) & ((solution[:, -1] - 1).abs() < FITS)
    return torch.where(steady[:, None], solution / solution[:, -1:], peeled.seen)


def _fill(peeled: Peeled, split: Disentangled | None, layer: LinearLayer) -> Tensor:
    """Return as many uncertified candidates as examples are left."""
    if not peeled.left:
        return peeled.seen[:0]
    likely = peeled.seen[:0]
    if split is not None and len(split.seen) <= peeled.left:
        likely = split.seen[(split.agreement >= LIKELY) & (layer.outside(split.seen) < OUTSIDE)]
    rows = _purest(peeled.spectrum(), peeled.rest, layer, peeled.left)
    chosen = torch.cat([likely, rows])[: peeled.left]
    return chosen.repeat(-(-peeled.left // len(chosen)), 1)[: peeled.left]


def _purest(spectrum: Spectrum, rest: Tensor, layer: LinearLayer, count: int) -> Tensor:
    """Return rows that mix fewest examples: in the box, each farthest from the span of those before."""
    matrix = spectrum.matrix if len(spectrum) else rest
    order = matrix[:, -1].abs().argsort(descending=True)
    matrix = matrix[order]
    scale = matrix[:, -1:]
    seen = torch.where(scale == 0, 0.0, matrix / torch.where(scale == 0, 1.0, scale))
    seen[:, -1] = 1
    inside = (layer.outside(seen) < OUTSIDE) & (scale[:, 0].abs() > 10 * spectrum.noise)
    if not bool(inside.any()):
        return seen[:count]
    pool = seen[inside]
    chosen, left = [], pool.clone()
    for _ in range(min(count, len(pool))):
        place = int(left.norm(dim=1).argmax())
        chosen.append(place)
        direction = left[place] / left[place].norm().clamp(min=1e-300)
        left = left - (left @ direction)[:, None] * direction
    return pool[chosen]
