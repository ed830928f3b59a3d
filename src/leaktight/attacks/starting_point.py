"""Starting points: where a search starts, for the examples and for the gradient of an unknown loss."""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor

from leaktight.attacks.features import Features, feature_misfit, read_features
from leaktight.attacks.guarded_lbfgs import SearchGuardedLBFGS
from leaktight.attacks.objective import Objective, outside
from leaktight.attacks.replay import FEATURE_GRADIENT, MASK
from leaktight.attacks.search_engine import Named, Phase, Problem, SearchEngine, SearchSettings
from leaktight.attacks.victims import Victims
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
    """Return starts (victims * restarts, examples, *shape) in natural units: what an example of its class looks like.

    The first of a victim's starts is the mean public example of each label. A mean is one point, so that further ones
    are single public examples of the label, drawn with replacement. A label that no public example has counts as any.

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


def draw_feature_gradients(victims: Victims, rows: int, rng: Stream) -> Tensor:
    """Draw gradients at the features, (rows, examples, features), of the size that suits what was sent.

    Their direction is random. With their size the body of a random example sends as much as the victim's did: a search
    that starts far above or below would fix that first, and leave the image.

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


MASK_SPREAD = 0.5
"""How far from the average mask a search for the real one starts, in logits."""


def draw_masks(victims: Victims, rows: int, rng: Stream) -> dict[str, Tensor]:
    """Draw what dropout left of each example, as logits near the average mask, (rows, examples, ...) by unknown.

    Args:
        victims: whose messages.
        rows: how many candidates all victims have together.
        rng: where the draws come from.
    """
    masks = {}
    for use, dropped in victims.replay.dropped.items():
        noise = torch.randn(rows, victims.replay.examples, *dropped.shape, generator=rng).to(victims.device)
        masks[MASK + use] = math.log((1 - dropped.rate) / dropped.rate) + MASK_SPREAD * noise
    return masks


def _size(victims: Victims, victim: int, slopes: Tensor, inputs: Tensor) -> Tensor:
    """Return how many times as much a victim's body sent as these examples do with these gradients at the features."""
    sighting, replay = victims.sightings[0], victims.replay
    parameters = sighting.parameters if sighting.same else {n: t[victim] for n, t in sighting.parameters.items()}
    wanted = {name: tensor[victim] for name, tensor in sighting.wanted.items()}
    targets = torch.zeros(len(inputs), replay.task.classes, device=victims.device)
    means = replay(parameters, inputs, targets, {FEATURE_GRADIENT: slopes}, None, wanted).means
    wires = {replay.task.wire(name) for name in replay.task.model.tensors() if name.startswith("body.")}
    observed, replayed = (
        torch.cat([tensor.flatten() for name, tensor in tensors.items() if name in wires]).norm()
        for tensors in (wanted, means)
    )
    size: Tensor = observed / replayed
    return size if bool(size.isfinite()) and size > 0 else torch.ones_like(size)


READINGS = 4
"""How many readings of the features, or starts of a single reading, are tried for each candidate."""
EVALUATIONS = 100
WIDEN = 10.0
"""By how much the law of the features narrows from stretch to stretch."""


def start_at_features(objective: Objective, z: Tensor, rows: int, rng: Stream) -> Tensor:
    """Return coordinates that give the features which were read; one of several candidates stays at the prior's start.

    Args:
        objective: of the search that is to start.
        z: starts by the prior, (victims * rows, examples, width).
        rows: candidates of each victim.
        rng: where the draws come from.
    """
    keep_count = rows if objective.replay.examples > 1 else 1
    features = read_features(objective.victims, objective.coordinates, READINGS * keep_count, rng)
    if features is None:
        return z
    # Most wrong readings are not the features of any example, and most starts end elsewhere: the search drops them.
    count, by_prior = len(objective.victims), z.view(-1, rows, *z.shape[1:])
    wide = tuple(Phase(EVALUATIONS // 4, WIDEN**-power, keep * keep_count) for power, keep in ((4, 2), (2, 1)))
    engine = SearchEngine(
        _problem(objective, features),
        SearchSettings(SearchGuardedLBFGS(), (*wide, Phase(EVALUATIONS, keep=keep_count))),
    )
    first = torch.randn(count * READINGS * keep_count, *z.shape[1:], generator=rng).to(z.device)
    result = engine.race((first / objective.steps).flatten(1), count)
    by_features = result.points.view(count, keep_count, *z.shape[1:]) * objective.steps
    # The best readings first; where there are fewer of them than candidates, the others start at the prior.
    order = result.objective.view(count, keep_count).argsort(1)
    by_features = by_features[torch.arange(count, device=z.device)[:, None], order]
    if keep_count == rows > 1:
        by_features = by_features[:, :-1]
    return torch.cat([by_features, by_prior], 1)[:, :rows].flatten(0, 1)


def _problem(objective: Objective, features: Features) -> Problem:
    """Return the search for examples that give features: no gradient of a gradient, so that it costs a third."""
    sighting, replay, known = objective.victims.sightings[0], objective.replay, objective.victims.targets
    distance = feature_misfit(replay.task, features.layer)
    blank = torch.zeros(replay.examples, replay.task.classes, device=objective.device)

    def value(point: Tensor, shared: Named, own: Named, row: Named, weight: Tensor) -> Tensor:
        z = point.view(replay.examples, -1) * objective.steps
        inputs = objective.coordinates.decode(z, own["targets"] if known is not None else blank)
        total = objective.coordinates.penalty(z, inputs) + (outside(inputs) if objective.box else 0.0)
        parameters = (shared if sighting.same else own)["parameters"]
        return total + weight * distance(inputs, parameters, row["values"], own["spread"])

    parameters: dict[str, object] = {"parameters": dict(sighting.parameters)}
    targets: dict[str, object] = {} if known is None else {"targets": known}
    return Problem(
        objective=value,
        shared=parameters if sighting.same else {},
        own={"spread": features.spread, **targets, **({} if sighting.same else parameters)},
        rows={"values": features.values.flatten(0, 1)},
        bytes_per_row=objective.bytes_per_row(),
    )
