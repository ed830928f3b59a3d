"""The law of single entries: how far a channel may move each number of a message from one example's gradient."""

from __future__ import annotations

import torch
from torch import Tensor

from leaktight.attacks.replay import Replay
from leaktight.channels import outward
from leaktight.channels.likelihood import bound_of, ranked_noise
from leaktight.core.channel import Belief, Mask, Noise, push_all
from leaktight.core.message import Kind, Tensors

ROUNDING = 1e-7
"""What single precision leaves of an entry, as a share of the largest of its tensor."""


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
