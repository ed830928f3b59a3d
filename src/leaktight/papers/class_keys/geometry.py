"""Geometry: how random keys lie to each other (Fig. 2), and where a class with two keys is drawn (Fig. 8)."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from leaktight.core.draws import Draws, public_draws
from leaktight.defences.key_theory import closest, largest_overlap, random_keys
from leaktight.papers.class_keys.settings import Scope
from leaktight.papers.reproduction import Row

KEYS = 100
"""How many keys are compared two by two in Fig. 2."""
NEW = 1000
"""How many other keys a shared class is compared with in Fig. 8."""
NORMAL, UNIFORM = "normal", "uniform"


def overlap_rows(scope: Scope, seed: int) -> list[Row]:
    """Return the largest inner product among keys over all repeats, beside what theory says of Gaussian ones.

    `theory_low` and `theory_high` are the ends of intervals that in 95 % of such experiments hold at all dimensions together.
    """
    pairs = scope.repeats * KEYS * (KEYS - 1) // 2
    tail = (1 - 0.95 ** (1 / len(scope.powers))) / 2
    return [
        {
            "distribution": distribution,
            "dimensions": 2**power,
            "largest": _largest(2**power, scope.repeats, distribution, public_draws(seed, "overlap", distribution, power)),
            "theory": largest_overlap(2**power, pairs),
            "theory_low": largest_overlap(2**power, pairs, tail),
            "theory_high": largest_overlap(2**power, pairs, 1 - tail),
        }
        for distribution in (NORMAL, UNIFORM)
        for power in scope.powers
    ]


def shared_rows(scope: Scope, seed: int) -> list[Row]:
    """Return the largest score of a class with two keys, and the largest with any other key, over all repeats."""
    return [_shared(dimensions, scope.repeats, public_draws(seed, "shared", dimensions)) for dimensions in scope.shared]


def _largest(dimensions: int, repeats: int, distribution: str, draws: Draws) -> float:
    found = -1.0
    for _ in range(repeats):
        keys = _keys(dimensions, distribution, draws)
        found = max(found, (keys @ keys.t()).fill_diagonal_(-2).max().item())
    return found


def _keys(dimensions: int, distribution: str, draws: Draws) -> Tensor:
    if distribution == NORMAL:
        return random_keys(KEYS, dimensions, draws)
    return F.normalize(2 * draws.uniforms((KEYS, dimensions)) - 1, dim=1)


def _shared(dimensions: int, repeats: int, draws: Draws) -> Row:
    scores, others = [], []
    for _ in range(repeats):
        keys = random_keys(2, dimensions, draws)
        place = closest(keys)
        scores.append((keys @ place).max().item())
        others.append((random_keys(NEW, dimensions, draws) @ place).abs().max().item())
    return {
        "dimensions": dimensions,
        "largest_score": max(scores),
        "mean_score": sum(scores) / repeats,
        "largest_other": max(others),
    }
