"""The objective at the truth, which no attack sees: a metric asks for it to learn whether a search failed."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from leaktight.attacks.objective import Objective, floor
from leaktight.attacks.replay import FEATURE_GRADIENT, SURROGATE, Replay
from leaktight.attacks.term import Candidate
from leaktight.core.message import Tensors
from leaktight.core.run import Inside, is_joined


@torch.no_grad()
def objective_at_truth(objective: Objective, victim: int, truth: Sequence[Inside]) -> float:
    """Return the objective of the true examples and secrets; NaN where no candidate could be the truth.

    Of unknowns that have no true value, such as the point of a surrogate, the best of a few is taken.

    Args:
        objective: the attack's.
        victim: whose.
        truth: the other side of each of its messages.
    """
    if not all(_is_reachable(inside, objective.replay.examples) for inside in truth):
        return math.nan
    device, raw = objective.device, truth[0].raw
    inputs = raw.inputs.to(device)
    targets = nn.functional.one_hot(raw.labels, objective.replay.task.classes).float().to(device)
    seen = torch.zeros((), device=device)
    for sighting, inside in zip(objective.victims.sightings, truth, strict=True):
        wanted = {name: tensor[victim] for name, tensor in sighting.wanted.items()}
        floors = {name: floor(tensor)[victim] for name, tensor in sighting.wanted.items()}
        parameters = sighting.parameters if sighting.same else {n: t[victim] for n, t in sighting.parameters.items()}
        replay = dataclasses.replace(sighting.replay, task=inside.task, memory={})
        own = inside.task.named(parameters, inside.private)
        private = {name: tensor for name, tensor in own.items() if inside.task.wire(name) is None}
        choice = _true_choice(sighting.replay, inputs, inside.used.inputs.to(device))
        costs = [
            objective.match(replay(parameters, inputs, targets, {**private, **unknowns}, choice, wanted), wanted, floors)
            for unknowns in _true_unknowns(replay, own, inputs, targets)
        ]
        seen = seen + torch.stack(costs).min()
    z = objective.coordinates.encode(inputs, targets)
    return (seen + objective.plausibility(z, Candidate(inputs, targets, {}))).item()


def _is_reachable(inside: Inside, examples: int) -> bool:
    """Return whether a candidate can be the truth: one party's batch, of the size that the message says.

    The mean of several parties' messages is none of theirs, and a batch by Poisson sampling may have another size.
    """
    return not is_joined(inside) and len(inside.raw) == len(inside.used) == examples


def _true_unknowns(replay: Replay, parameters: Tensors, inputs: Tensor, targets: Tensor) -> list[dict[str, Tensor]]:
    """Return the true values of further unknowns, or several where there is no true one."""
    if replay.loss == "free":
        head = {name.removeprefix("head."): tensor for name, tensor in parameters.items() if name.startswith("head.")}
        with torch.enable_grad():
            features = replay.task.model.features(inputs).detach().requires_grad_(True)
            losses = replay.task.loss(torch.func.functional_call(replay.task.model.head, head, (features,)), targets)
            return [{FEATURE_GRADIENT: torch.autograd.grad(losses.sum(), features)[0].flatten(1)}]
    if replay.update == "surrogate":
        return [{SURROGATE: torch.tensor(logit, device=inputs.device)} for logit in (-3.0, -1.0, 0.0, 1.0, 3.0)]
    return [{}]


def _true_choice(replay: Replay, raw: Tensor, used: Tensor) -> Tensor | None:
    """Return the outcome of each example that comes nearest to what was trained on, (examples, outcomes)."""
    if not replay.channel.outcomes:
        return None
    each = torch.stack([(outcome.change(raw) - used).flatten(1).square().sum(1) for outcome in replay.channel.outcomes], 1)
    return nn.functional.one_hot(each.argmin(1), each.shape[1]).float()
