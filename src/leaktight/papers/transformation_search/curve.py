"""The gradient similarity on the way from noise to an image, with no, a random and the hybrid policy (Fig. 1)."""

from __future__ import annotations

from collections.abc import Sequence

from leaktight.papers.check import Check, above
from leaktight.papers.paper import Experiment
from leaktight.papers.records import Records
from leaktight.papers.row import Row, claims, groups, number, over_runs, paired_columns, value_at
from leaktight.papers.transformation_search import points
from leaktight.papers.transformation_search.audits import LESS_SIMILAR, PLACE, place_of
from leaktight.papers.transformation_search.mechanisms import HYBRID, NONE, three_policies
from leaktight.papers.transformation_search.scales import Study
from leaktight.probes.privacy_score import SIMILARITY_AT

HALF = 0.5
PUBLISHED = claims(
    ("With a good policy similarity hardly changes at first; without one it rises steadily.", "4.2, Fig. 1"),
)


def rows(study: Study, records: Records) -> list[Row]:
    """Return a row for each policy and share of the way; nothing for a score that failed."""
    runs = {
        name: points.score_cells(study, records, policy)
        for name, policy in {NONE: None, **three_policies(study)}.items()
    }
    return [
        {
            **place_of(study.focus),
            "policy": name,
            "way": float(point.removeprefix(SIMILARITY_AT)),
            **over_runs("similarity", own.readings(point).values()),
            **paired_columns(LESS_SIMILAR, runs[NONE].readings(point), own.readings(point)),
        }
        for name, own in runs.items()
        for point in _points(own)
    ]


def checks(rows: Sequence[Row]) -> list[Check]:
    """Compare the middle of the way: the paper's curve of a good policy is flat there."""
    verdicts = []
    for place, own in groups(rows, *PLACE):
        middle = min((number(row, "way") or 0.0 for row in own), key=lambda way: abs(way - HALF))
        gap = value_at(own, LESS_SIMILAR, policy=HYBRID, way=middle)
        verdicts.append(above(f"Similarity(none) - similarity(hybrid), halfway, {', '.join(place)}", gap, 0))
    return verdicts


def _points(runs: Records) -> list[str]:
    """Return the readings that are points of a curve, from the start of the way on."""
    names = {reading.name for record in runs for reading in record.readings if reading.name.startswith(SIMILARITY_AT)}
    return sorted(names, key=lambda name: float(name.removeprefix(SIMILARITY_AT)))


EXPERIMENT = Experiment(
    table="curve",
    keys=(*PLACE, "policy", "way"),
    plans=points.plans,
    rows=rows,
    published=PUBLISHED,
    checks=checks,
)
