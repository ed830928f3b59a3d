"""What a generator is told by a key behind the fixed layer: how alike it is for two random keys, by their length."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from leaktight.core.draws import Draws, public_draws
from leaktight.defences.embedding import FixedLayer
from leaktight.defences.key_theory import effective_length, image_overlap, random_keys
from leaktight.papers.check import Check, at_most, within
from leaktight.papers.class_keys.scales import DIMENSIONS, Scope
from leaktight.papers.paper import Experiment
from leaktight.papers.records import Records
from leaktight.papers.row import Row, claims, number, rows_where

FEATURES = (84, 256, 512)
"""How many features LeNet has, and the two networks of the public code."""
PAIRS, INPUTS = 50, 20
NEAR = 0.3
"""By which share the measured overlap may differ from theory."""
PUBLISHED = claims(
    ("The dimensionality of the keys directly affects the security of the model, like the length of passwords.", "1"),
    ("A fixed layer allows much higher dimensional keys without more parameters, and robustness with them.", "4.4"),
)
OURS = (
    "`overlap` is the root mean square of the cosine between the slopes, by the features, of two random keys' scores: "
    "what a generator follows. A random key is as near to the true one for it as this says. Beyond as many dimensions "
    "as features it hardly falls any more."
)


def rows(scope: Scope, records: Records) -> list[Row]:
    """Return the overlap for each number of features and each length."""
    return [
        {
            "features": features,
            "dimensions": dimensions,
            "effective_length": effective_length(dimensions, features),
            "overlap": _overlap(features, dimensions, public_draws(scope.seed, "images", features, dimensions)),
            "theory": image_overlap(dimensions, features),
        }
        for features in FEATURES
        for dimensions in DIMENSIONS
    ]


def checks(rows: Sequence[Row]) -> list[Check]:
    """Ask whether theory holds, and whether the longest keys tell less than keys a quarter as long."""
    verdicts = []
    for features in FEATURES:
        own = rows_where(rows, features=features)
        longest, quarter = ([number(row, "overlap") for row in rows_where(own, dimensions=d)] for d in (16_384, 4096))
        ratio = longest[0] / quarter[0] if longest and quarter and longest[0] and quarter[0] else None
        words = f"Overlap of what two random keys tell a generator, 16,384 over 4,096 dimensions, {features} features"
        verdicts.append(at_most(words, ratio, 0.75))
    errors = [
        abs(measured / theory - 1)
        for row in rows
        if (measured := number(row, "overlap")) is not None and (theory := number(row, "theory"))
    ]
    words = "Largest relative error of the theory of effective lengths"
    return [*verdicts, within(words, max(errors, default=None), NEAR)]


def _overlap(features: int, dimensions: int, draws: Draws) -> float:
    """Return the root mean square cosine of the slopes of pairs of random keys at random features."""
    layer = FixedLayer(features, dimensions, seed=0)
    squares = []
    for _ in range(PAIRS):
        inputs = draws.normals((INPUTS, features))
        one, other = (F.normalize(_slopes(layer, inputs, random_keys(1, dimensions, draws)), dim=1) for _ in range(2))
        squares.append((one * other).sum(1).square().mean())
    return torch.stack(squares).mean().sqrt().item()


def _slopes(layer: FixedLayer, inputs: Tensor, key: Tensor) -> Tensor:
    _, slopes = layer.tangents(inputs, key, inputs.new_ones(len(inputs), 1))
    return slopes


EXPERIMENT = Experiment(
    table="key_images",
    keys=("features", "dimensions"),
    rows=rows,
    published=PUBLISHED,
    checks=checks,
    notes=lambda scope: [OURS],
)
