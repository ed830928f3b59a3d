"""Sealing orders: which layers to protect first, by what an attack still tells from all the others."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping

import torch
import torch.nn.functional as F
from torch import Tensor

from leaktight.core.draws import Draws, public_draws
from leaktight.core.errors import InvalidValue
from leaktight.core.task import Batch, Task
from leaktight.learning.gradient import gradient
from leaktight.learning.gradient_features import pool_layers
from leaktight.learning.optimiser import Adam
from leaktight.statistics.auc import GUESSING, auc

_RIDGE = 0.1
_FAR = 5.0
"""How many deviations from its mean a feature counts at most."""
_BATCH, _PAIRS, _STEPS = 32, 40, 40
"""How large a shadow's batches are, how many pairs of them there are, and how many training steps lie between them."""
_MOMENTS = (0, _STEPS)
_LEAST = 4
"""How many public examples of either kind there must be: two for each half."""


@dataclasses.dataclass(frozen=True)
class Sealing:
    """One step of an order: a layer that is protected, and what is told without it and all before it.

    Args:
        layer: which layer.
        auc: of an attack on what remains; a half once nothing does.
    """

    layer: str
    auc: float


def sealing_order(features: Mapping[str, Tensor], positive: Tensor, halves: Tensor) -> list[Sealing]:
    r"""Return the layers in the order in which to protect them, found by adding them one by one to what is seen.

    What a set of layers S tells is the larger of two AUCs, and no less than a half: of all of S together, and of the
    layer of S that tells most by itself, as nobody makes an attacker use all that it sees. From nothing on, the layer
    is opened that raises it least; of equals the one after which rows are fitted worst. The layer that is opened last
    is protected first, so that each beginning of the order is the choice of this search for that many layers. It looks
    one layer ahead: a better set may exist.

    An AUC is that of ridge regression on rows of length one, standardised and cut, every layer with the same weight,
    fitted to one half and asked about the other, and the other way round.

    Args:
        features: of gradients, by layer, a row for each.
        positive: which gradients have the property.
        halves: 0 or 1 for each gradient: no example is behind gradients of both.

    Example:
        >>> told, noise = torch.tensor([[1.0, 0.0], [0.0, 1.0]]).repeat(8, 1), torch.eye(16)
        >>> order = sealing_order({"a": noise, "b": told}, torch.arange(16) % 2 == 0, torch.arange(16) // 8)
        >>> [(step.layer, step.auc) for step in order][0][0], order[-1].auc
        ('b', 0.5)
    """
    kernels = {layer: _kernel(rows) for layer, rows in features.items()}
    alone = {layer: _score(kernel, positive, halves) for layer, kernel in kernels.items()}
    opened: list[str] = []
    reached: list[float] = []
    total = torch.zeros(len(positive), len(positive), dtype=torch.float64)
    while len(opened) < len(kernels):
        found: dict[str, tuple[float, float]] = {}
        for layer, kernel in kernels.items():
            if layer not in opened:
                together, error = _score((total + kernel) / (len(opened) + 1), positive, halves)
                told = max(GUESSING, together, *(alone[one][0] for one in (*opened, layer)))
                found[layer] = told, -error
        # Of equals the last of the network is opened first, so that the order does not hang on a sort.
        least = min(reversed(found), key=lambda layer: found[layer])
        opened.append(least)
        reached.append(found[least][0])
        total = total + kernels[least]
    remaining = [GUESSING, *reached[:-1]]
    return [Sealing(layer, rest) for layer, rest in zip(reversed(opened), reversed(remaining), strict=True)]


def public_order(task: Task, public: Batch) -> tuple[str, ...]:
    """Return a sealing order by a small shadow attack on public examples alone, the same for all who ask.

    A model is trained on them for some steps from the task's parameters on; before and after, gradients of batches
    with the property and without are what `sealing_order` looks at. One half of the examples is behind one half of the
    gradients.

    Args:
        task: the public task.
        public: examples of which it is known who has the property.

    Raises:
        InvalidValue: too few have the property, or have not, or the training diverged.
    """
    draws = public_draws(0, "sealing_order")
    halves = [_deal(public, draws, kind) for kind in (1, 0)]
    rows: dict[str, list[Tensor]] = {}
    positive, half_of = [], []
    for parameters in _train(task, public, draws):
        for number in range(_PAIRS):
            for kind, members in ((1, halves[0]), (0, halves[1])):
                half = number % 2
                batch = public.take(_pick(members[half], draws).to(public.labels.device))
                for layer, row in _features(task, parameters, batch).items():
                    rows.setdefault(layer, []).append(row)
                positive.append(kind == 1)
                half_of.append(half)
    features = {layer: torch.cat(each) for layer, each in rows.items()}
    for layer, each in features.items():
        if not torch.isfinite(each).all():
            raise InvalidValue(
                f"The gradients of `{layer}` on public data must be finite numbers. Got others; look at the data."
            )
    order = sealing_order(features, torch.tensor(positive), torch.tensor(half_of))
    return tuple(step.layer for step in order)


def _kernel(rows: Tensor) -> Tensor:
    """Return how alike each two rows are, one on average of a row with itself."""
    unit = F.normalize(rows.detach().cpu().double(), dim=1, eps=torch.finfo(torch.float64).tiny)
    mean, spread = unit.mean(0), unit.std(0, correction=0)
    # What varies by rounding alone does not vary.
    varies = spread > 1e-9 * mean.abs()
    standard = torch.where(varies, (unit - mean) / torch.where(varies, spread, 1.0), 0.0).clamp(-_FAR, _FAR)
    kernel = standard @ standard.T
    size = kernel.diagonal().mean()
    return kernel / size if size > 0 else kernel


def _score(kernel: Tensor, positive: Tensor, halves: Tensor) -> tuple[float, float]:
    """Return the AUC of rows by a fit to the other half, and its mean squared error."""
    target = positive.double() * 2 - 1
    aucs, errors = [], []
    for half in (0, 1):
        own, other = (halves == half).nonzero()[:, 0], (halves != half).nonzero()[:, 0]
        centre = target[other].mean()
        inner = kernel[other][:, other] + _RIDGE * torch.eye(len(other), dtype=torch.float64)
        weights = torch.linalg.solve(inner, target[other] - centre)
        answers = kernel[own][:, other] @ weights + centre
        aucs.append(auc(answers, positive[own]))
        errors.append((answers - target[own]).square().mean().item())
    return sum(aucs) / 2, sum(errors) / 2


def _deal(public: Batch, draws: Draws, kind: int) -> tuple[Tensor, Tensor]:
    """Return the positions of the examples of a kind in two halves."""
    if public.properties is None:
        raise InvalidValue(
            "The `public` data of layer_guard must have a private property, by which layers are ranked. It has none; "
            "set `private_property`, or take a class for it by `class_property`."
        )
    members = (public.properties == kind).nonzero()[:, 0].cpu()
    if len(members) < _LEAST:
        raise InvalidValue(
            f"The `public` data of layer_guard must have at least {_LEAST} examples with the private property and as "
            f"many without. Got {len(members)} {'with' if kind else 'without'} it; take other data."
        )
    shuffled = members[draws.permutation(len(members))]
    return shuffled[::2], shuffled[1::2]


def _pick(members: Tensor, draws: Draws) -> Tensor:
    """Return the positions of a batch, none twice unless there are too few."""
    if len(members) >= _BATCH:
        return members[draws.permutation(len(members))[:_BATCH]]
    return members[draws.integers(len(members), (_BATCH,))]


def _train(task: Task, public: Batch, draws: Draws) -> Iterator[dict[str, Tensor]]:
    """Yield the task's parameters, and what they become by training on public examples."""
    leaves = {name: tensor.clone().requires_grad_(True) for name, tensor in task.model.tensors().items()}
    steps = Adam().over(leaves.values())
    everyone = torch.arange(len(public))
    for number in range(_MOMENTS[-1] + 1):
        if number in _MOMENTS:
            yield {name: leaf.detach().clone() for name, leaf in leaves.items()}
        batch = public.take(_pick(everyone, draws).to(public.labels.device))
        found = gradient(task, {name: leaf.detach() for name, leaf in leaves.items()}, batch, running=_running(task))
        for name, leaf in leaves.items():
            leaf.grad = found.tensors[name].detach()
        steps.step()


def _features(task: Task, parameters: Mapping[str, Tensor], batch: Batch) -> dict[str, Tensor]:
    found = gradient(task, parameters, batch, running=_running(task)).tensors
    return pool_layers({name: tensor.detach()[None] for name, tensor in task.outward(found).items()})


def _running(task: Task) -> dict[str, Tensor]:
    return task.model.running()
