"""How close an attack's candidates come to the gradient in each layer, at some moments of the attack (Fig. 6)."""

from __future__ import annotations

from collections.abc import Sequence

from leaktight.papers.check import Check, above, within
from leaktight.papers.paper import Experiment
from leaktight.papers.records import Records
from leaktight.papers.row import Row, claims, groups, number, over_runs, paired_columns, value_at
from leaktight.papers.transformation_search import attacks
from leaktight.papers.transformation_search.audits import LESS_SIMILAR, PLACE, place_of
from leaktight.papers.transformation_search.mechanisms import HYBRID, NONE, three_defences
from leaktight.papers.transformation_search.scales import Study

AFTER = "similarity_after_"
SAME = 0.1
"""Similarities that count as equal."""
PUBLISHED = claims(
    (
        "At two shallow layers similarity converges to 0.7 with no or a random policy, and stays lower with the "
        "hybrid.",
        "5.4, Fig. 6",
    ),
    ("At two deep layers it is almost the same in all three cases.", "5.4, Fig. 6"),
)


def rows(study: Study, records: Records) -> list[Row]:
    """Return a row for each layer, moment and policy of three; nothing for an attack that failed."""
    runs = {
        name: attacks.cells(study, records, attacks.PATH).where(defence=defence).done
        for name, defence in three_defences(study).items()
    }
    return [
        row for name, own in runs.items() for row in _rows({**place_of(study.focus), "policy": name}, own, runs[NONE])
    ]


def checks(rows: Sequence[Row]) -> list[Check]:
    """Compare the first and the last layer at the end of the attack."""
    verdicts = []
    for key, own in groups(rows, *PLACE):
        place = ", ".join(key)
        last = max(number(row, "iterations") or 0 for row in own)
        ended = [row for row in own if number(row, "iterations") == last]
        deepest = max(int(number(row, "layer") or 0) for row in own)
        first_gap, last_gap = (value_at(ended, LESS_SIMILAR, layer=layer, policy=HYBRID) for layer in (1, deepest))
        verdicts += [
            above(f"Similarity(none) - similarity(hybrid), first layer, {place}", first_gap, 0),
            within(f"Similarity(none) - similarity(hybrid), last layer, {place}", last_gap, SAME),
        ]
    return verdicts


def _rows(place: Row, runs: Records, plain: Records) -> list[Row]:
    found = [reading for record in runs for reading in record.readings if reading.name.startswith(AFTER)]
    # The trained layers in the order of the network, as the first moment has them.
    layers = list(dict.fromkeys(reading.layer for reading in found))
    moments = sorted({int(reading.name.removeprefix(AFTER)) for reading in found})
    rows: list[Row] = []
    for at, layer in enumerate(layers, start=1):
        for moment in moments:
            own, bare = (each.readings(f"{AFTER}{moment}", layer=layer, optional=True) for each in (runs, plain))
            rows.append(
                {
                    **place,
                    "layer": at,
                    "name": layer,
                    "iterations": moment,
                    **over_runs("similarity", own.values()),
                    **paired_columns(LESS_SIMILAR, bare, own),
                }
            )
    return rows


EXPERIMENT = Experiment(
    table="similarity",
    keys=(*PLACE, "policy", "layer", "iterations"),
    plans=attacks.plans,
    rows=rows,
    published=PUBLISHED,
    checks=checks,
)
