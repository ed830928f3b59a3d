"""The privacy score of each of the 50 functions alone, and its rank from the lowest (Fig. 5)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from leaktight.papers.check import Check, at_least
from leaktight.papers.paper import Experiment
from leaktight.papers.records import Records
from leaktight.papers.row import Row, claims, columns, groups, number
from leaktight.papers.transformation_search import points
from leaktight.papers.transformation_search.audits import PLACE, place_of
from leaktight.papers.transformation_search.points import SCORE, privacy_score
from leaktight.papers.transformation_search.scales import Study
from leaktight.transforms.library import LIBRARY, same_as
from leaktight.transforms.policy import Policy

LOWEST = (3, 15, 18, 26, 1)
"""The five functions with the lowest published scores, from the lowest."""
COMMON = 3
"""How many of the five lowest functions must be the paper's."""
PUBLISHED = claims(
    (
        "The five lowest scores are those of 3 (translateX), 15 (brightness), 18 (contrast), 26 (brightness) and 1 "
        "(contrast).",
        "5.4, Fig. 5",
    )
)


def rows(study: Study, records: Records) -> list[Row]:
    """Return a row for each function, scored on the semi-trained model."""
    rows: list[Row] = []
    for function in LIBRARY:
        policy = Policy(branches=((same_as(function.index),),))
        rows.append(
            {
                **place_of(study.focus),
                "function": function.index,
                "operation": function.operation,
                "level": function.level,
                **columns(SCORE, privacy_score(study, records, policy)),
            }
        )
    # Indices that do the same have one score, and share the rank of the first.
    distinct = sorted({score for row in rows if (score := number(row, SCORE)) is not None})
    ranks = {score: rank for rank, score in enumerate(distinct, start=1)}
    return [{**row, "rank": ranks.get(cast("float", row[SCORE]))} for row in rows]


def checks(rows: Sequence[Row]) -> list[Check]:
    """Count the paper's five lowest functions among ours."""
    verdicts = []
    for place, own in groups(rows, *PLACE):
        ranked = [row for row in own if number(row, "rank") is not None]
        lowest = {row["function"] for row in ranked if (number(row, "rank") or 0) <= len(LOWEST)}
        count = float(len(lowest & set(LOWEST))) if ranked else None
        verdicts.append(
            at_least(f"How many of the five lowest functions are the paper's, {', '.join(place)}", count, COMMON)
        )
    return verdicts


EXPERIMENT = Experiment(
    table="functions",
    keys=(*PLACE, "function"),
    plans=points.plans,
    rows=rows,
    published=PUBLISHED,
    checks=checks,
)
