"""What a key at some distance from the victim's is worth (experiment II, Fig. 5)."""

from __future__ import annotations

from collections.abc import Sequence

from leaktight.defences.class_keys import ClassKeys
from leaktight.papers.check import Check, above, at_most
from leaktight.papers.class_keys.audits import KNOWN, STOPPED, plan_attacks_with_key, repeated_audits, score_columns
from leaktight.papers.class_keys.mechanisms import EXACT, key_at
from leaktight.papers.class_keys.scales import OLIVETTI, Scope
from leaktight.papers.comparison import difference, farthest
from leaktight.papers.paper import Experiment
from leaktight.papers.records import Records
from leaktight.papers.row import Row, claims, groups, number, reading_of

FAR, FAR_FACES = 0.5, 1.1
"""From which distance to the victim's key on the paper recognises nothing: digits, and faces."""
PUBLISHED = claims(
    ("On MNIST there is a sharp threshold: from a distance of 0.5 samples are not recognised.", "5.3 II, Fig. 5"),
    ("On faces nothing can be made out from 1.1.", "5.3 II, Fig. 5"),
)


def rows(scope: Scope, records: Records) -> list[Row]:
    """Return a row for each distance; 0 is the key itself."""
    return [
        {
            "data_set": study.name,
            "dimensions": study.dimensions,
            "distance": distance,
            **score_columns(records, repeated_audits(study, KNOWN), ClassKeys(dimensions=study.dimensions), label),
        }
        for study in scope.studies
        for label, distance in {EXACT: 0.0, **{key_at(distance): distance for distance in study.distances}}.items()
    ]


def checks(rows: Sequence[Row]) -> list[Check]:
    """Ask for a curve that falls, and for nothing beyond the paper's threshold."""
    return [check for (name,), own in groups(rows, "data_set") for check in _checks(own, name)]


def _checks(rows: Sequence[Row], name: str) -> list[Check]:
    """Compare the key itself, and the nearest other one before the threshold, with the farthest; and look beyond it."""
    threshold = FAR_FACES if name == OLIVETTI else FAR
    near = [row for row in rows[:-1] if (number(row, "distance") or 0) < threshold]
    far = [row for row in rows if (number(row, "distance") or 0) >= threshold]
    verdicts = []
    for row in near[:2]:
        gap = difference(reading_of(row, "recognised"), reading_of(rows[-1], "recognised"))
        words = " - ".join(f"recognised({number(each, 'distance'):g})" for each in (row, rows[-1]))
        verdicts.append(above(f"The delta curve: {words}, {name}", gap, 0))
    if far:
        most = farthest([reading_of(row, "recognised") for row in far])
        verdicts.append(at_most(f"Most samples recognised, key at {threshold:g} or farther, {name}", most, STOPPED))
    return verdicts


EXPERIMENT = Experiment(
    table="distances",
    keys=("data_set", "dimensions", "distance"),
    plans=plan_attacks_with_key,
    rows=rows,
    published=PUBLISHED,
    checks=checks,
)
