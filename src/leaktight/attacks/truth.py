"""The objective at the truth: a metric asks for it to learn whether a search failed. No attack sees it."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from leaktight.attacks.objective import Objective, floors, surprise
from leaktight.attacks.replay import FEATURE_GRADIENT, MASK, SURROGATE, Replay, features_of
from leaktight.attacks.term import Candidate
from leaktight.core.message import Tensors
from leaktight.core.run import GroundTruth, is_joined

SURE = 30.0


@torch.no_grad()
def objective_at_truth(objective: Objective, victim: int, truth: Sequence[GroundTruth]) -> float:
    """Return the objective of the true examples and secrets; NaN where no candidate could be the truth.

    Of unknowns that have no true value, such as the point of a surrogate, the best of a few is taken.

    Args:
        objective: the attack's.
        victim: whose.
        truth: the ground truth behind each of its messages.
    """
    if not all(_is_reachable(ground_truth, objective.replay.examples) for ground_truth in truth):
        return math.nan
    device = objective.device
    examples = [_examples(ground_truth, objective.replay.task.classes, device) for ground_truth in truth]
    seen = torch.zeros((), device=device)
    messages = zip(objective.victims.sightings, truth, examples, strict=True)
    for number, (sighting, ground_truth, (inputs, targets)) in enumerate(messages):
        message = sighting.evidence(victim)
        parameters, wanted = message.parameters, message.sent
        exact = {name: each[victim] for name, each in floors(sighting.wanted, sighting.replay).items()}
        replay, private = sighting.replay, dict[str, Tensor]()
        own = ground_truth.task.model_parameters(parameters, ground_truth.private)
        # An attack that knows nothing of a private task is judged by its own objective, in which there is none.
        if replay.channel.private_task and replay.loss == "known":
            replay = dataclasses.replace(replay, task=ground_truth.task, memory={})
            private = {name: tensor for name, tensor in own.items() if ground_truth.task.wire(name) is None}
        choice = _true_choice(sighting.replay, inputs, ground_truth.used.inputs.to(device))
        costs = [
            objective.match(replay(parameters, inputs, targets, {**private, **unknowns}, choice, wanted), wanted, exact)
            + surprise(replay, choice, number)
            for unknowns in _true_unknowns(replay, ground_truth, own, targets)
        ]
        seen = seen + torch.stack(costs).min()
    inputs, targets = examples[0]
    evidence = tuple(sighting.evidence(victim) for sighting in objective.victims.sightings)
    z = objective.coordinates.encode(inputs, targets)
    return (seen + objective.plausibility(z, Candidate(inputs, targets, {}, evidence))).item()


def _examples(ground_truth: GroundTruth, classes: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Return the true examples behind a message, in its own order, and their labels as probabilities."""
    return ground_truth.raw.inputs.to(device), nn.functional.one_hot(ground_truth.raw.labels, classes).float().to(
        device
    )


def _is_reachable(ground_truth: GroundTruth, examples: int) -> bool:
    """Return whether a candidate can be the truth: one party's batch, of the size that the message says.

    The mean of several parties' messages is none of theirs, and a batch by Poisson sampling may have another size.
    """
    return not is_joined(ground_truth) and len(ground_truth.raw) == len(ground_truth.used) == examples


def _true_unknowns(
    replay: Replay, ground_truth: GroundTruth, parameters: Tensors, targets: Tensor
) -> list[dict[str, Tensor]]:
    """Return the true values of further unknowns, or several where there is no true one."""
    # As sure as single precision can say it of an entry that was dropped, or was not.
    masks = {
        MASK + use: torch.where(ground_truth.masks[use].to(targets.device) > 0, SURE, -SURE)
        for use in replay.dropped
        if use in ground_truth.masks
    }
    if replay.loss == "free":
        head = {name.removeprefix("head."): tensor for name, tensor in parameters.items() if name.startswith("head.")}
        with torch.enable_grad():
            seen = (
                features_of(ground_truth.task, parameters, ground_truth.used.inputs.to(targets.device))
                .detach()
                .requires_grad_(True)
            )
            losses = ground_truth.task.loss(
                torch.func.functional_call(ground_truth.task.model.head, head, (seen,)), targets
            )
            return [{FEATURE_GRADIENT: torch.autograd.grad(losses.sum(), seen)[0].flatten(1)}]
    if replay.update == "surrogate":
        return [
            {**masks, SURROGATE: torch.tensor(logit, device=targets.device)} for logit in (-3.0, -1.0, 0.0, 1.0, 3.0)
        ]
    return [masks]


def _true_choice(replay: Replay, raw: Tensor, used: Tensor) -> Tensor | None:
    """Return the outcome of each example that comes nearest to what was trained on, (examples, outcomes)."""
    if not replay.channel.outcomes:
        return None
    each = torch.stack(
        [(outcome.change(raw) - used).flatten(1).square().sum(1) for outcome in replay.channel.outcomes], 1
    )
    return nn.functional.one_hot(each.argmin(1), each.shape[1]).float()
