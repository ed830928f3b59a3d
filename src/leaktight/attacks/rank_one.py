"""Rank one: what a linear layer saw of one example, by all rows of its gradient, each entry weighed by its law."""

from __future__ import annotations

import dataclasses

import torch
from torch import Tensor

from leaktight.attacks.replay import Replay
from leaktight.channels import outward
from leaktight.channels.likelihood import bound_of, ranked_noise
from leaktight.core.channel import Belief, Mask, Noise, push_all
from leaktight.core.message import Kind, Tensors

STEPS = 100
"""How often the two sides of a weighted fit take turns, at most."""
SETTLED = 1e-10
ROUNDING = 1e-7
"""What single precision leaves of an entry, as a share of the largest."""


@dataclasses.dataclass(frozen=True)
class RankOne:
    r"""A matrix taken for \(\delta y^T\).

    Args:
        slopes: \(\delta\), (units,).
        seen: y, (width + 1,), of length 1.
        spread: the standard deviation of each entry of y.
    """

    slopes: Tensor
    seen: Tensor
    spread: Tensor


def fit_rank_one(matrix: Tensor, precision: Tensor | None = None) -> RankOne:
    r"""Return the rank-one matrix next to this one.

    For one example the gradient of z = W x + b is \([\delta x^T | \delta]\), under any loss: each row is a copy of
    \(y = (x, 1)\). Where all entries have noise of one law, the best y is the leading right singular vector (total
    least squares). Where the law differs from entry to entry, with precision P,

    .. math:: \min_{\delta, y} \sum_{ij} P_{ij} (M_{ij} - \delta_i y_j)^2

    is solved by turns from there. A precision of 0 leaves an entry out. Where the fit leaves more than this law says,
    the spread is that of what it leaves.

    Args:
        matrix: [dL/dW | dL/db], (units, width + 1).
        precision: 1 / variance of each entry; None if it is the same for all, at a level that nobody knows: it is then
            read off what the fit leaves.

    Example:
        >>> fit = fit_rank_one(torch.tensor([[0.5, 1.0], [-1.0, -2.0]]).double())
        >>> fit.seen / fit.seen[-1]
        tensor([0.5000, 1.0000], dtype=torch.float64)

    References: Golub and Van Loan 1980, total least squares; Geiping et al. 2020, proposition 3.1, for a single row.
    """
    y = _leading_vector(matrix)
    slopes = matrix @ y
    free, excess = max((matrix.shape[0] - 1) * (matrix.shape[1] - 1), 1), 1.0
    if precision is None:
        variance = (matrix - slopes[:, None] * y).square().sum() / free
        variance = variance.clamp(min=(ROUNDING * matrix.abs().max()).square().item() + 1e-60)
        precision = (1 / variance).expand_as(matrix)
    else:
        y, slopes = _by_turns(matrix, precision, y)
        # A law that does not explain what is left is not the law: doubts grow as much as it falls short.
        left = (precision * (matrix - slopes[:, None] * y).square()).sum().item() / free
        excess = max(left, 1.0) ** 0.5
    weight = (precision * slopes[:, None].square()).sum(0)
    return RankOne(slopes, y, excess * weight.clamp(min=1e-300).rsqrt())


def _leading_vector(matrix: Tensor) -> Tensor:
    """Return the leading right singular vector."""
    if matrix.shape[0] <= matrix.shape[1]:
        # By the smaller of the two squares: a layer may see many thousand numbers.
        slopes = torch.linalg.eigh(matrix @ matrix.T).eigenvectors[:, -1]
        seen: Tensor = matrix.T @ slopes
        unit: Tensor = seen / seen.norm().clamp(min=1e-300)
        return unit
    vectors: Tensor = torch.linalg.eigh(matrix.T @ matrix).eigenvectors
    return vectors[:, -1]


def _by_turns(matrix: Tensor, precision: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Return the weighted fit, each side by least squares given the other."""
    weighted = precision * matrix
    slopes = y.new_zeros(len(matrix))
    for _ in range(STEPS):
        before = y
        slopes = (weighted @ y) / (precision @ y.square()).clamp(min=1e-300)
        y = (weighted.T @ slopes) / (precision.T @ slopes.square()).clamp(min=1e-300)
        size = y.norm().clamp(min=1e-300)
        y, slopes = y / size, slopes * size
        if (y - before).norm() < SETTLED:
            break
    return y, slopes


def entry_variances(replay: Replay, sent: Tensors) -> dict[str, Tensor]:
    r"""Return the variance of each entry of a message around what was sent without chance, by tensor.

    Clipping is a factor that all entries have in common, and drops out of any ratio. Laplace noise counts as Gaussian
    noise of its variance. An entry that a mask left out is zero, and what it would have been lies within the smallest
    magnitude t that came: like any number of which nothing but \(|m| \le t\) is known, it counts with variance
    \(t^2 / 3\).

    Args:
        replay: how the sender is modelled, with the channel of its defence.
        sent: what it sent, by wire name.
    """
    channel, task = replay.channel, replay.task
    wires = {name: wire for name in task.model.tensors() if (wire := task.wire(name)) in sent}
    belief = Belief({name: sent[str(wire)] for name, wire in wires.items()}, examples=replay.examples)
    belief = push_all((*channel.example, *channel.step), belief)
    if replay.kind is Kind.UPDATE:
        belief = belief.map_noise(lambda noise: noise.scale(replay.steps.learning_rate))
    belief = push_all(channel.message, outward(belief, task.wire)).only(sent)
    return {name: _variance(belief, name, sent) for name in belief.means}


def visible_variances(gradient: Tensor) -> Tensor | None:
    """Return the variance of each entry as the message itself shows it; None if nothing was left out.

    Without a mask a zero has a whole row of zeros, of a unit that is not active, or a whole column, of an input that is
    zero.

    Args:
        gradient: [dL/dW | dL/db], (units, width + 1).
    """
    came = gradient != 0
    missing = ~came & came.any(1, keepdim=True) & came.any(0)
    if not bool(missing.any()):
        return None
    size = gradient.abs()
    edge = torch.where(came, size, torch.inf).min()
    return torch.where(came, 0.0, edge.square() / 3) + (ROUNDING * size.max()).square()


def _variance(belief: Belief, name: str, sent: Tensors) -> Tensor:
    seen, mask = sent[name].double(), belief.masks.get(name)
    floor = (ROUNDING * seen.abs().max()).square().clamp(min=1e-60)
    noise = _spread(belief.noise_of(name), seen)
    if mask is None:
        return noise + floor
    if belief.noise_of(name).is_none:
        kept = _spread(ranked_noise(mask) + _after(mask), seen)
        # Where nothing bounds what is missing, nothing came of these tensors at all.
        return torch.where(seen != 0, kept, bound_of(belief, name, sent).double().square() / 3) + floor
    edge = torch.as_tensor(mask.edge, dtype=seen.dtype, device=seen.device)
    kept = noise + _spread(ranked_noise(mask) + _after(mask), seen)
    return torch.where(seen.abs() >= edge, kept, noise + edge.square() / 3) + floor


def _after(mask: Mask) -> Noise:
    return mask.sent if mask.before is None else mask.sent + mask.before.sent


def _spread(noise: Noise, like: Tensor) -> Tensor:
    variance = torch.as_tensor(noise.as_gaussian().variance, dtype=like.dtype, device=like.device).expand_as(like)
    return variance if noise.along is None else variance + noise.along.double().square()
