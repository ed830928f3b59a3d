"""How near the keys that an attacker estimates come to true ones; a table of our own."""

from __future__ import annotations

from collections.abc import Sequence

from leaktight.core.metric import Reading
from leaktight.defences.class_keys import ClassKeys
from leaktight.papers.check import Check, at_most
from leaktight.papers.class_keys import audits
from leaktight.papers.class_keys.gan_attack import BY_UPDATES
from leaktight.papers.class_keys.mechanisms import ESTIMATED
from leaktight.papers.class_keys.scales import Scope
from leaktight.papers.comparison import difference
from leaktight.papers.paper import Experiment
from leaktight.papers.records import Records
from leaktight.papers.row import Row, claims, number, over_seeds, reading_of

PUBLISHED = claims(
    ("There is no supervisory signal that an attacker can use to guess private keys better than random.", "4.3"),
)


def rows(scope: Scope, records: Records) -> list[Row]:
    """Return the cosine of the estimate with the nearest key in the end, beside that of a random direction."""
    return [
        _row(study.name, dimensions, audits.repeated_audits(study, BY_UPDATES), records)
        for study in scope.studies
        for dimensions in study.estimated
    ]


def checks(rows: Sequence[Row]) -> list[Check]:
    """Ask whether estimates are no nearer to a key than random directions are."""
    verdicts = []
    for row in rows:
        words = f"Cosine of estimated and nearest key - chance, {number(row, 'dimensions'):,.0f}, {row['data_set']}"
        chance = number(row, "key_cosine_chance")
        level = None if chance is None else Reading(name="chance", value=chance)
        verdicts.append(at_most(words, difference(reading_of(row, "key_cosine"), level), 0))
    return verdicts


def _row(data_set: str, dimensions: int, names: list[str], records: Records) -> Row:
    runs = records.where(*names, label=ESTIMATED, defence=ClassKeys(dimensions=dimensions)).done
    readings = list(runs.readings("key_cosine", optional=True).values())
    levels = [reading.chance for reading in readings if reading.chance is not None]
    return {
        "data_set": data_set,
        "dimensions": dimensions,
        **over_seeds("key_cosine", [reading.value for reading in readings]),
        "key_cosine_chance": sum(levels) / len(levels) if levels else None,
    }


EXPERIMENT = Experiment(
    table="estimated_keys", keys=("data_set", "dimensions"), rows=rows, published=PUBLISHED, checks=checks
)
