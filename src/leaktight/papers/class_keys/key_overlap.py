"""How random keys lie to each other: the largest overlap of any two, by their length (Fig. 2)."""

from __future__ import annotations

from collections.abc import Sequence

import torch.nn.functional as F
from torch import Tensor

from leaktight.core.draws import Draws, public_draws
from leaktight.defences.key_theory import largest_overlap, random_keys
from leaktight.papers.check import Check, at_least
from leaktight.papers.class_keys.scales import Scope
from leaktight.papers.paper import Experiment
from leaktight.papers.records import Records
from leaktight.papers.row import Row, claims, number, rows_where

KEYS = 100
"""How many keys are compared two by two."""
NORMAL, UNIFORM = "normal", "uniform"
OVERLAPS = (
    "Overlaps must be within the intervals of theory at all dimensions together. Where theory is right, one seed in "
    "twenty fails this."
)
PUBLISHED = claims(("As keys get longer, the largest overlap of any two among 100 diminishes sharply.", "4.3, Fig. 2"))


def rows(scope: Scope, records: Records) -> list[Row]:
    """Return the largest inner product among keys over all repeats, beside what theory says of Gaussian ones.

    `theory_low` and `theory_high` are the ends of intervals that in 95 % of such experiments hold at all dimensions
    together.
    """
    pairs = scope.repeats * KEYS * (KEYS - 1) // 2
    tail = (1 - 0.95 ** (1 / len(scope.powers))) / 2
    rows: list[Row] = []
    for distribution in (NORMAL, UNIFORM):
        for power in scope.powers:
            draws = public_draws(scope.seed, "overlap", distribution, power)
            rows.append(
                {
                    "distribution": distribution,
                    "dimensions": 2**power,
                    "largest": _largest_overlap(2**power, scope.repeats, distribution, draws),
                    "theory": largest_overlap(2**power, pairs),
                    "theory_low": largest_overlap(2**power, pairs, tail),
                    "theory_high": largest_overlap(2**power, pairs, 1 - tail),
                }
            )
    return rows


def checks(rows: Sequence[Row]) -> list[Check]:
    """Count where the largest overlap of Gaussian keys is in the interval that theory gives."""
    own = rows_where(rows, distribution=NORMAL)
    answers = [_is_within(row) for row in own]
    known = [answer for answer in answers if answer is not None]
    share = sum(known) / len(own) if own and len(known) == len(own) else None
    return [at_least("Share of dimensions at which the largest overlap of random keys is as theory says", share, 1)]


def _largest_overlap(dimensions: int, repeats: int, distribution: str, draws: Draws) -> float:
    largest = -1.0
    for _ in range(repeats):
        keys = _draw_keys(dimensions, distribution, draws)
        largest = max(largest, (keys @ keys.t()).fill_diagonal_(-2).max().item())
    return largest


def _draw_keys(dimensions: int, distribution: str, draws: Draws) -> Tensor:
    if distribution == NORMAL:
        return random_keys(KEYS, dimensions, draws)
    return F.normalize(2 * draws.uniforms((KEYS, dimensions)) - 1, dim=1)


def _is_within(row: Row) -> bool | None:
    value, low, high = (number(row, name) for name in ("largest", "theory_low", "theory_high"))
    # In two dimensions all are 1, but for rounding.
    return None if value is None or low is None or high is None else low - 1e-6 <= value <= high + 1e-6


EXPERIMENT = Experiment(
    table="key_overlap",
    keys=("distribution", "dimensions"),
    rows=rows,
    published=PUBLISHED,
    checks=checks,
    notes=lambda scope: [OVERLAPS],
)
