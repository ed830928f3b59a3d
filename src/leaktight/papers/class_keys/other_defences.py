"""Keys beside defences that were not made for this attack; the attacker has no key. A comparison of our own."""

from __future__ import annotations

from leaktight.core.defence import Defence, Undefended
from leaktight.defences.class_keys import ClassKeys
from leaktight.papers.class_keys.audits import GUESSED, plan_attacks_without_key, repeated_audits, score_columns
from leaktight.papers.class_keys.mechanisms import PLAIN, RANDOM, keys_of, other_defences
from leaktight.papers.class_keys.scales import Scope, Study
from leaktight.papers.paper import Experiment
from leaktight.papers.records import Records
from leaktight.papers.row import Row, claims

PUBLISHED = claims(("Noise trades accuracy for privacy; keys need no such trade.", "2"))


def rows(scope: Scope, records: Records) -> list[Row]:
    """Return a row for each defence."""
    return [
        {
            "data_set": study.name,
            "defence": name,
            **score_columns(records, repeated_audits(study, GUESSED), defence, RANDOM),
        }
        for study in scope.studies
        for name, defence in _comparison(study).items()
    ]


def _comparison(study: Study) -> dict[str, Defence]:
    keys = {keys_of(study.dimensions): ClassKeys(dimensions=study.dimensions)}
    return {PLAIN: Undefended(), **keys, **other_defences(study.noises, study.shares)}


EXPERIMENT = Experiment(
    table="other_defences", keys=("data_set", "defence"), plans=plan_attacks_without_key, rows=rows, published=PUBLISHED
)
