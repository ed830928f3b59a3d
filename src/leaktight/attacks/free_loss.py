"""Free loss: where the search for the gradient of an unknown loss at the features starts."""

from __future__ import annotations

import torch
from torch import Tensor

from leaktight.attacks.replay import FEATURE_GRADIENT
from leaktight.attacks.victims import Victims
from leaktight.core.random import Stream


def draw_feature_gradients(victims: Victims, rows: int, rng: Stream) -> Tensor:
    """Draw gradients at the features for so many candidates, (rows, examples, features), of the size that suits what was sent.

    Their direction is random. By their size the body of a random example sends as much as the victim's did: a search that starts far above
    or below it mends that first, and leaves the image.

    Args:
        victims: whose messages; each has as many rows.
        rows: how many candidates all victims have together.
        rng: where the draws come from.
    """
    task, count = victims.replay.task, victims.replay.examples
    features = task.model.features(torch.zeros(1, *task.shape, device=victims.device)).flatten(1).shape[1]
    slopes = torch.randn(rows, count, features, generator=rng).to(victims.device)
    inputs = torch.rand(count, *task.shape, generator=rng).to(victims.device)
    sizes = torch.stack([_size(victims, victim, slopes[0], inputs) for victim in range(len(victims))])
    return slopes * sizes.repeat_interleave(rows // len(victims))[:, None, None]


def _size(victims: Victims, victim: int, slopes: Tensor, inputs: Tensor) -> Tensor:
    """Return how many times as much a victim's body sent as that of these examples does with these gradients at the features."""
    sighting, replay = victims.sightings[0], victims.replay
    parameters = sighting.parameters if sighting.same else {n: t[victim] for n, t in sighting.parameters.items()}
    wanted = {name: tensor[victim] for name, tensor in sighting.wanted.items()}
    targets = torch.zeros(len(inputs), replay.task.classes, device=victims.device)
    means = replay(parameters, inputs, targets, {FEATURE_GRADIENT: slopes}, None, wanted).means
    wires = {replay.task.wire(name) for name in replay.task.model.tensors() if name.startswith("body.")}
    observed, replayed = (
        torch.cat([tensor.flatten() for name, tensor in tensors.items() if name in wires]).norm() for tensors in (wanted, means)
    )
    size: Tensor = observed / replayed
    return size if bool(size.isfinite()) and size > 0 else torch.ones_like(size)
