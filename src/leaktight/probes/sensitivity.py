"""Sensitivity: how strongly each layer's gradient responds to a change of the target, or of a private property."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor

from leaktight.core.message import Tensors
from leaktight.core.metric import Quantity, Reading
from leaktight.core.probe import Finding, Probe
from leaktight.core.random import Stream
from leaktight.core.run import Run
from leaktight.core.task import Batch, Task
from leaktight.learning.bounded_norm import NORMS, bounded_norms, spans, totals
from leaktight.learning.target_jacobian import BYTES, TOGETHER, loss_gradient, target_norms
from leaktight.probes.public import latest, public_examples

_DRAWS = 2000
_ENDS = torch.tensor((0.025, 0.975), dtype=torch.float64)


class Sensitivity(Probe):
    r"""Say which layers' gradients change most with what is to be learned, without naming an attack or a property.

    Nothing private is read: K of the run's public examples stand for private ones, at the parameters that were sent
    last. For layer l,

    .. math:: \frac{1}{K \psi_l} \sum_{k=1}^K
        \left\| \frac{\partial g_l(y_k) / \partial y_k}{\max g_l(y_k) - \min g_l(y_k)} \right\|_p

    with \(g_l(y_k)\) the gradient of example k's loss in the N weights and biases of the layer, \(y_k\) its target as a
    probability for each class, at the one-hot label, and \(\psi_l = \sqrt{N}, N, 1\) for p = F, 1 (the sum of absolute
    entries) and infinity (the largest one). Readings are `sensitivity_f`, `sensitivity_1` and `sensitivity_inf` of each
    layer, `each` has the examples in order; and each as a share of the sum over layers, `sensitivity_f_share` and so
    on. Intervals are bootstrapped over examples. A gradient without a range counts as 0. An example that is all but
    learned has a small gradient and hence a large value: a few of them may make most of the mean.

    If at least two public examples have the property and two have not, `property_sensitivity_f` and so on are the same
    of the difference between their mean gradients, in place of the Jacobian (see `property_norms`), on up to K / 2
    examples of either kind. Means of few examples differ by chance too; `chance` is what examples whose properties are
    dealt out anew give on average. The interval is the basic bootstrap's, which takes that much off again: its lower
    end may be far below the value.

    Args:
        samples: K, how many public examples to draw, at least 2; more make narrower intervals and take as much longer.

    Example:
        >>> from leaktight.core.random import stream
        >>> from leaktight.testing import toy_run
        >>> found = Sensitivity(samples=8).read(toy_run(), stream(0, "sensitivity")).readings
        >>> [(reading.name, reading.layer) for reading in found][:2]
        [('sensitivity_f', 'body.1'), ('sensitivity_f', 'head')]
        >>> round(sum(reading.value for reading in found if reading.name == "sensitivity_1_share"), 6)
        1.0

    Differs from the paper: \(N_l N_{l-1}\) counts the weights of a linear layer; N here counts the entries of any
    layer, biases too, and as there not the classes. It says that a Jacobian with respect to the property may do better,
    and gives none: a property of {0, 1} has no derivative, so that the difference quotient stands for it, bounded by
    the range of the mean gradient of both kinds in equal parts.

    References:
        Mo et al., Layer-wise Characterization of Latent Information Leakage in Federated Learning, 2021, eq. 9 and 10,
        sections 4.3, 6.2, 6.3. Efron and Tibshirani, An Introduction to the Bootstrap, 1993, chapter 13 (percentile and
        basic intervals).
    """

    kind: Literal["sensitivity"] = "sensitivity"
    samples: int = Field(32, ge=2)

    @classmethod
    def quantities(cls) -> Mapping[str, Quantity]:
        """Return what it reads, by the names of its readings."""
        norms = dict(zip(NORMS, ("F", "1", "max"), strict=True))
        return {
            f"{asked.replace(' ', '_')}sensitivity_{norm}": Quantity(f"{asked}sensitivity ({title})", leaks="high")
            for asked in ("", "property ")
            for norm, title in norms.items()
        }

    def read(self, run: Run, rng: Stream) -> Finding:
        """Measure on public examples at the latest parameters."""
        parameters = latest(run, self.kind)
        examples = public_examples(run, self.kind, self.samples, rng)
        readings = _over_examples(target_norms(run.public, parameters, examples), rng)
        return Finding((*readings, *self._of_property(run, parameters, rng)))

    def _of_property(self, run: Run, parameters: Tensors, rng: Stream) -> list[Reading]:
        public = run.auxiliary
        if public is None or public.properties is None:
            return []
        kinds = [torch.nonzero(public.properties == value)[:, 0] for value in (1, 0)]
        if min(map(len, kinds)) < 2:
            return []
        half = max(2, self.samples // 2)
        drawn = [members[torch.randperm(len(members), generator=rng)[:half].to(members.device)] for members in kinds]
        examples = public.take(torch.cat(drawn))
        means = draw_means(torch.arange(len(examples)) < len(drawn[0]), rng)
        return _over_means(property_norms(run.public, parameters, examples, means), len(examples))


def _over_examples(norms: Mapping[str, Tensor], rng: Stream) -> list[Reading]:
    """Return the mean over examples of each norm in each layer, and its share of all layers."""
    tables = torch.stack(list(norms.values()), 1)
    count = len(tables)
    drawn = torch.randint(count, (_DRAWS, count), generator=rng)
    readings = []
    for norm, table in zip(NORMS, tables.unbind(2), strict=True):
        name, mean = f"sensitivity_{norm}", table.mean(0)
        resampled = torch.stack([column[drawn].mean(1) for column in table.T], 1)
        ends = resampled.quantile(_ENDS, dim=0), _shares(resampled).quantile(_ENDS, dim=0)
        readings += _readings(name, norms, mean, ends[0], n=count, each=table.T.tolist())
        readings += _readings(f"{name}_share", norms, _shares(mean), ends[1], n=count)
    return readings


def _over_means(norms: Mapping[str, Tensor], count: int) -> list[Reading]:
    """Return what the measured means give for each norm and layer, beside resamples and shuffled properties."""
    tables = torch.stack(list(norms.values()), 1)
    readings = []
    for norm, table in zip(NORMS, tables.unbind(2), strict=True):
        for name, values in (
            (f"property_sensitivity_{norm}", table),
            (f"property_sensitivity_{norm}_share", _shares(table)),
        ):
            value, resampled, dealt = values[0], values[1 : 1 + RESAMPLES], values[1 + RESAMPLES :]
            # Resampled means stray from the measured ones as these from the true ones: the interval is turned round.
            ends = (2 * value - resampled.quantile(_ENDS.flip(0), dim=0)).clamp_min(0)
            readings += _readings(name, norms, value, ends, n=count, chance=dealt.mean(0).tolist())
    return readings


def _readings(
    name: str,
    layers: Iterable[str],
    values: Tensor,
    ends: Tensor,
    n: int,
    chance: Sequence[float] | None = None,
    each: Sequence[Sequence[float]] | None = None,
) -> list[Reading]:
    """Return one reading for each layer; the interval always holds the value, and one example alone gives none."""
    readings = []
    for place, (layer, value, (low, high)) in enumerate(zip(layers, values.tolist(), ends.T.tolist(), strict=True)):
        reading = Reading(
            name=name,
            value=value,
            low=min(low, value) if n > 1 else None,
            high=max(high, value) if n > 1 else None,
            n=n,
            chance=chance[place] if chance else None,
            leaks="high",
            layer=layer,
            each=tuple(each[place]) if each else (),
        )
        readings.append(reading)
    return readings


def _shares(values: Tensor) -> Tensor:
    """Divide the values of all layers by their sum; where that is 0, each share is 0."""
    total = values.sum(-1, keepdim=True)
    return torch.where(total > 0, values / torch.where(total > 0, total, 1.0), 0.0)


RESAMPLES, SHUFFLES = 200, 100

# Entries of a layer whose means are in work at once.
_WIDTH = 16_384


@dataclasses.dataclass(frozen=True)
class Means:
    """The weight of each example in a mean over those with the property, and over those without; a row per reading."""

    holders: Tensor
    others: Tensor


def property_norms(
    task: Task, parameters: Tensors, batch: Batch, means: Means, memory: int = BYTES
) -> dict[str, Tensor]:
    r"""Return the bounded norms of each layer's change with a property: a row per pair of means, a column per norm.

    With \(\bar g_l^1, \bar g_l^0\) the mean gradients of examples with and without the property, and
    \(g_l(p) = (1 - p) \bar g_l^0 + p \bar g_l^1\) that of examples of which a share p has it,

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
        >>> norms = property_norms(task, task.model.tensors(), toy_batch(4), means)
        >>> {layer: tuple(rows.shape) for layer, rows in norms.items()}
        {'body.1': (1, 3), 'head': (1, 3)}
    """
    norms = {}
    for layer, gradients in _gradients(task, parameters, batch, memory):
        gap, middle = (
            weights.to(gradients) for weights in (means.holders - means.others, (means.holders + means.others) / 2)
        )
        pieces = torch.split(gradients, _WIDTH, dim=1)
        total, span = totals(gap @ piece for piece in pieces), spans(middle @ piece for piece in pieces)
        norms[layer] = bounded_norms(total, span, gradients.shape[1])
    return norms


def draw_means(properties: Tensor, rng: Stream, resamples: int = RESAMPLES, shuffles: int = SHUFFLES) -> Means:
    """Return the means of examples with and without a property, then of resamples, then of shuffled properties.

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
            yield layer, torch.cat([(rows := each.pop(name).detach().cpu()).reshape(len(rows), -1) for name in own], 1)
