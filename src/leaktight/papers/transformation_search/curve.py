"""The gradient similarity on the way from noise to an image, with no, a random and the hybrid policy (Fig. 1)."""

from __future__ import annotations

from collections.abc import Sequence

from leaktight.papers.check import Check, above
from leaktight.papers.comparison import difference
from leaktight.papers.paper import Experiment
from leaktight.papers.records import Records, find_reading
from leaktight.papers.row import Row, claims, columns, groups, number, value_at
from leaktight.papers.transformation_search import points
from leaktight.papers.transformation_search.audits import PLACE, place_of
from leaktight.papers.transformation_search.mechanisms import HYBRID, NONE, three_policies
from leaktight.papers.transformation_search.scales import Study
from leaktight.probes.privacy_score import SIMILARITY_AT

HALF = 0.5
PUBLISHED = claims(
    ("With a good policy similarity hardly changes at first; without one it rises steadily.", "4.2, Fig. 1"),
)


def rows(study: Study, records: Records) -> list[Row]:
    """Return a row for each policy and share of the way; nothing for a score that failed."""
    return [
        {**place_of(study.focus), "policy": name, "way": way, **columns("similarity", find_reading(record, reading))}
        for name, policy in {NONE: None, **three_policies(study)}.items()
        for record in points.score_cell(study, records, policy)
        for way, reading in sorted(
            (float(each.name.removeprefix(SIMILARITY_AT)), each.name)
            for each in record.readings
            if each.name.startswith(SIMILARITY_AT)
        )
    ]


def checks(rows: Sequence[Row]) -> list[Check]:
    """Compare the middle of the way: the paper's curve of a good policy is flat there."""
    verdicts = []
    for place, own in groups(rows, *PLACE):
        middle = min((number(row, "way") or 0.0 for row in own), key=lambda way: abs(way - HALF))
        gap = difference(*(value_at(own, "similarity", policy=name, way=middle) for name in (NONE, HYBRID)))
        verdicts.append(above(f"Similarity(none) - similarity(hybrid), halfway, {', '.join(place)}", gap, 0))
    return verdicts


EXPERIMENT = Experiment(
    table="curve",
    keys=(*PLACE, "policy", "way"),
    plans=points.plans,
    rows=rows,
    published=PUBLISHED,
    checks=checks,
)
