"""How well the privacy score of the semi-trained model predicts PSNR over random policies (Fig. 2)."""

from __future__ import annotations

from collections.abc import Sequence

from leaktight.papers.check import Check, at_least
from leaktight.papers.correlation import correlation_columns, of_columns
from leaktight.papers.paper import Experiment
from leaktight.papers.records import Records
from leaktight.papers.row import Row, claims, reading_of, rows_where
from leaktight.papers.transformation_search import points
from leaktight.papers.transformation_search.audits import ABOVE, PLACE, place_of
from leaktight.papers.transformation_search.mechanisms import NONE
from leaktight.papers.transformation_search.points import DRAWS, MODELS, SCORE, SIMILARITIES, ending
from leaktight.papers.transformation_search.scales import Study

MODERATE = 0.5
"""A correlation that is moderate."""
ALL = "all"
AGAINST = {"transformed": "psnr", "original": "psnr_original", "above chance": ABOVE}
"""The columns of the kinds of PSNR; the last one is against the transformed image too."""
AGAINST_WORDS = {"transformed": "PSNR", "above chance": "PSNR above chance"}
PUBLISHED = claims(("Privacy score and PSNR of 100 random policies have a correlation of 0.697.", "4.2, Fig. 2"))


def rows(study: Study, records: Records) -> list[Row]:
    """Return a row for each model, cosine, kind of PSNR and draw of policies; the last one is all draws together."""
    policies = [row for row in points.rows(study, records) if row["policy"] != NONE]
    return [
        {
            **place_of(study.focus),
            "attacked": attacked,
            "similarity": similarity,
            "against": against,
            "draw": draw or ALL,
            **correlation_columns(
                of_columns(
                    [row for row in policies if draw in (0, row["draw"])],
                    f"{SCORE}{ending(similarity)}",
                    f"{column}{ending(attacked)}",
                )
            ),
        }
        for attacked in MODELS
        for similarity in SIMILARITIES
        for against, column in AGAINST.items()
        for draw in (*range(1, DRAWS + 1), 0)
    ]


def checks(rows: Sequence[Row]) -> list[Check]:
    """Ask whether the score predicts what an attack on the semi-trained model finds, by either cosine."""
    return [
        at_least(
            f"R(privacy score by the cosine {row['similarity']}, {AGAINST_WORDS[str(row['against'])]}) over policies, "
            f"{', '.join(str(row[key]) for key in PLACE)}",
            reading_of(row, "r"),
            MODERATE,
        )
        for row in rows_where(rows, attacked="semi-trained", draw=ALL)
        if row["against"] in AGAINST_WORDS
    ]


EXPERIMENT = Experiment(
    table="correlation",
    keys=(*PLACE, "attacked", "similarity", "against", "draw"),
    plans=points.plans,
    rows=rows,
    published=PUBLISHED,
    checks=checks,
)
