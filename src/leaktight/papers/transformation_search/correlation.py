"""How well the privacy score predicts PSNR over random policies: scored on one model, attacked on another (Fig. 2)."""

from __future__ import annotations

from collections.abc import Sequence

from leaktight.papers.check import Check, at_least
from leaktight.papers.correlation import correlation_columns, of_columns
from leaktight.papers.paper import Experiment
from leaktight.papers.records import Records
from leaktight.papers.row import Row, claims, reading_of, rows_where
from leaktight.papers.transformation_search import points
from leaktight.papers.transformation_search.audits import PLACE, place_of
from leaktight.papers.transformation_search.mechanisms import NONE
from leaktight.papers.transformation_search.points import SCORE, STAGES, ending
from leaktight.papers.transformation_search.scales import Study

MODERATE = 0.5
"""A correlation that is moderate."""
PUBLISHED = claims(("Privacy score and PSNR of 100 random policies have a correlation of 0.697.", "4.2, Fig. 2"))


def rows(study: Study, records: Records) -> list[Row]:
    """Return a row for each pair of models, for PSNR against the transformed image and against the original."""
    policies = [row for row in points.rows(study, records) if row["policy"] != NONE]
    return [
        {
            **place_of(study.focus),
            "scored": scored,
            "attacked": attacked,
            "against": against,
            **correlation_columns(of_columns(policies, f"{SCORE}{ending(scored)}", f"{column}{ending(attacked)}")),
        }
        for against, column in (("transformed", "psnr"), ("original", "psnr_original"))
        for scored in STAGES
        for attacked in STAGES
    ]


def checks(rows: Sequence[Row]) -> list[Check]:
    """Ask whether the score on the semi-trained model predicts the attack, on either model."""
    return [
        at_least(
            f"R(privacy score, PSNR) over policies, attacks on the {row['attacked']} model, "
            f"{', '.join(str(row[key]) for key in PLACE)}",
            reading_of(row, "r"),
            MODERATE,
        )
        for row in rows_where(rows, scored="semi-trained", against="transformed")
        # The paper attacks trained models; what came of the untrained one is in the table.
        if row["attacked"] != "untrained"
    ]


EXPERIMENT = Experiment(
    table="correlation",
    keys=(*PLACE, "scored", "attacked", "against"),
    plans=points.plans,
    rows=rows,
    published=PUBLISHED,
    checks=checks,
)
