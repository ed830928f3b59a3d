"""Start a search at examples that give the features which were read off the first linear layer."""

from __future__ import annotations

import torch
from torch import Tensor

from leaktight.attacks.features import Features, feature_misfit, read_features
from leaktight.attacks.guarded_lbfgs import SearchGuardedLBFGS
from leaktight.attacks.objective import Objective, outside
from leaktight.attacks.search_engine import Named, Phase, Problem, Search, SearchEngine
from leaktight.core.random import Stream

READINGS = 4
"""How many readings of the features, or starts where there is one reading, are tried for each candidate that is to come of them."""
EVALUATIONS = 100
WIDEN = 10.0
"""By how much the law of the features narrows from stretch to stretch."""


def start_at_features(objective: Objective, z: Tensor, rows: int, rng: Stream) -> Tensor:
    """Return coordinates that give the features which were read; if there are several candidates, one stays where the prior put it.

    Args:
        objective: of the search that is to start.
        z: starts by the prior, (victims * rows, examples, width).
        rows: candidates of each victim.
        rng: where the draws come from.
    """
    kept = rows if objective.replay.examples > 1 else 1
    features = read_features(objective.victims, objective.coordinates, READINGS * kept, rng)
    if features is None:
        return z
    # Most wrong readings are no features of any example, and most starts end elsewhere: the search finds out, and goes on with the others.
    count, by_prior = len(objective.victims), z.view(-1, rows, *z.shape[1:])
    wide = tuple(Phase(EVALUATIONS // 4, WIDEN**-power, keep * kept) for power, keep in ((4, 2), (2, 1)))
    engine = SearchEngine(_problem(objective, features), Search(SearchGuardedLBFGS(), (*wide, Phase(EVALUATIONS, keep=kept))))
    first = torch.randn(count * READINGS * kept, *z.shape[1:], generator=rng).to(z.device)
    result = engine.race((first / objective.steps).flatten(1), count)
    by_features = result.points.view(count, kept, *z.shape[1:]) * objective.steps
    # The best readings first; where there are fewer of them than candidates, the others start at the prior.
    order = result.objective.view(count, kept).argsort(1)
    by_features = by_features[torch.arange(count, device=z.device)[:, None], order]
    if kept == rows > 1:
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
