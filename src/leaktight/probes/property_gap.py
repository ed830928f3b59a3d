"""Property gap: how each layer's mean gradient changes with a private property of the examples."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import torch
from torch import Tensor

from leaktight.core.message import Tensors
from leaktight.core.random import Stream
from leaktight.core.task import Batch, Task
from leaktight.learning.bounded_norm import bounded, spans, totals
from leaktight.learning.target_jacobian import BYTES, TOGETHER, loss_gradient

RESAMPLES, SHUFFLES = 200, 100

# Entries of a layer whose means are in work at once.
_WIDTH = 16_384


@dataclasses.dataclass(frozen=True)
class Means:
    """What each example counts for in a mean over those with the property and in one over those without; a row for each reading."""

    holders: Tensor
    others: Tensor


def property_norms(task: Task, parameters: Tensors, batch: Batch, means: Means, memory: int = BYTES) -> dict[str, Tensor]:
    r"""Return the bounded norms of each layer's change with a property, a row for each pair of means and a column for each of `NORMS`.

    With \(\bar g_l^1, \bar g_l^0\) the mean gradients of examples with and without the property, and \(g_l(p) = (1 - p) \bar g_l^0 + p \bar g_l^1\) that
    of examples of which a share p has it,

    .. math:: \frac{1}{\psi} \left\| \frac{\bar g_l^1 - \bar g_l^0}{\max g_l(1/2) - \min g_l(1/2)} \right\|_p, \qquad
        \psi = \sqrt{N}, N, 1 \text{ for } p = F, 1, \infty.

    The numerator is the difference quotient over p from 0 to 1 and, as \(g_l(p)\) is linear, its derivative at 1/2 too.

    Args:
        task: what is learned.
        parameters: every parameter, by the model's names.
        batch: the examples.
        means: which means to compare.
        memory: about how many bytes gradients may take at once; those of all examples in one layer are made at least.

    Example:
        >>> from leaktight.testing import toy_batch, toy_task
        >>> task, means = toy_task(), Means(torch.tensor([[0.5, 0.5, 0, 0]]), torch.tensor([[0, 0, 0.5, 0.5]]))
        >>> {layer: tuple(rows.shape) for layer, rows in property_norms(task, task.model.tensors(), toy_batch(4), means).items()}
        {'body.1': (1, 3), 'head': (1, 3)}
    """
    norms = {}
    for layer, gradients in _gradients(task, parameters, batch, memory):
        gap, middle = (weights.to(gradients) for weights in (means.holders - means.others, (means.holders + means.others) / 2))
        pieces = torch.split(gradients, _WIDTH, dim=1)
        total, span = totals(gap @ piece for piece in pieces), spans(middle @ piece for piece in pieces)
        norms[layer] = bounded(total, span, gradients.shape[1])
    return norms


def draw_means(properties: Tensor, rng: Stream, resamples: int = RESAMPLES, shuffles: int = SHUFFLES) -> Means:
    """Return the means of those with and without a property; then of resamples of each; then of properties dealt out anew.

    Example:
        >>> from leaktight.core.random import stream
        >>> means = draw_means(torch.tensor([1, 1, 0, 0]), stream(0, "means"))
        >>> means.holders[0].tolist(), means.others[0].tolist(), len(means.holders)
        ([0.5, 0.5, 0.0, 0.0], [0.0, 0.0, 0.5, 0.5], 301)
    """
    has = properties.cpu().bool()
    sides = []
    for side in (has, ~has):
        members = side.nonzero()[:, 0]
        resample = members[torch.randint(len(members), (resamples, len(members)), generator=rng)]
        counts = torch.zeros(resamples, len(has), dtype=torch.float64).scatter_add_(
            1, resample, torch.ones_like(resample).double()
        )
        sides.append(torch.cat([side[None].double(), counts]))
    dealt = has[torch.rand(shuffles, len(has), generator=rng).argsort(1)].double()
    holders, others = torch.cat([sides[0], dealt]), torch.cat([sides[1], 1 - dealt])
    return Means(holders / holders.sum(1, keepdim=True), others / others.sum(1, keepdim=True))


def _gradients(task: Task, parameters: Tensors, batch: Batch, memory: int) -> Iterator[tuple[str, Tensor]]:
    """Make the gradients of all examples in each layer: those of as many layers at a time as fit, else of one."""
    waiting = task.layers()
    while waiting:
        group: dict[str, tuple[str, ...]] = {}
        room = memory
        while waiting:
            layer, own = next(iter(waiting.items()))
            room -= sum(parameters[name].nbytes for name in own) * len(batch)
            if group and room < 0:
                break
            group[layer] = waiting.pop(layer)
        gradient = loss_gradient(task, parameters, [name for own in group.values() for name in own])
        each = torch.func.vmap(gradient, chunk_size=TOGETHER)(batch.inputs, batch.labels)
        for layer, own in group.items():
            yield layer, torch.cat([each.pop(name).detach().cpu().flatten(1) for name in own], 1)
