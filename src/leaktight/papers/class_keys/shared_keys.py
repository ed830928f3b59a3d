"""A class with two keys: where it is drawn between them, and how far it stays from all others (Fig. 8)."""

from __future__ import annotations

import math
from collections.abc import Sequence

from leaktight.core.draws import Draws, public_draws
from leaktight.defences.key_theory import closest, random_keys
from leaktight.papers.check import Check, at_most, within
from leaktight.papers.class_keys.audits import STOPPED
from leaktight.papers.class_keys.scales import Scope
from leaktight.papers.paper import Experiment
from leaktight.papers.records import Records
from leaktight.papers.row import Row, claims, number

NEW = 1000
"""How many other keys a shared class is compared with."""
ROOT, POINTS = math.sqrt(0.5), 0.02
"""The score of a class with each of two orthogonal keys, and how far from it ours may be."""
PUBLISHED = claims(
    ("The score with each of two keys of a class approaches 0.7.", "5.4, Fig. 8 left"),
    ("That with any other key vanishes.", "5.4, Fig. 8 right"),
)


def rows(scope: Scope, records: Records) -> list[Row]:
    """Return the largest score of a class with two keys, and the largest with any other key, over all repeats."""
    return [
        _row(dimensions, scope.repeats, public_draws(scope.seed, "shared", dimensions)) for dimensions in scope.shared
    ]


def checks(rows: Sequence[Row]) -> list[Check]:
    """Look at the longest keys."""
    words = f"keys of {number(rows[-1], 'dimensions') or 0:,.0f}"
    score = number(rows[-1], "mean_score")
    return [
        within(
            f"Score of a class with each of its two keys - 0.71, {words}",
            None if score is None else score - ROOT,
            POINTS,
        ),
        at_most(
            f"Largest overlap of a shared class with another key, {words}", number(rows[-1], "largest_other"), STOPPED
        ),
    ]


def _row(dimensions: int, repeats: int, draws: Draws) -> Row:
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


EXPERIMENT = Experiment(table="shared_keys", keys=("dimensions",), rows=rows, published=PUBLISHED, checks=checks)
