"""The GAN attack: plain framework, exact key (I), random keys (III), keys estimated from updates (Fig. 4 and 7)."""

from __future__ import annotations

from collections.abc import Sequence

from leaktight.core.defence import Undefended
from leaktight.defences.class_keys import ClassKeys
from leaktight.papers.check import Check, at_least, at_most
from leaktight.papers.class_keys import audits
from leaktight.papers.class_keys.mechanisms import ESTIMATED, EXACT, PLAIN, RANDOM
from leaktight.papers.class_keys.scales import Scope, Study
from leaktight.papers.paper import Experiment, Plans
from leaktight.papers.records import Records
from leaktight.papers.row import Row, claims, groups, number, rows_where, value_at

BY_UPDATES = "estimated"
WITH_EXACT, WITH_RANDOM, WITH_ESTIMATED = f"I: {EXACT}", f"III: {RANDOM}", f"beyond: {ESTIMATED}"
NOTHING = "null: noise for updates"
LONG = 4096
"""From how many dimensions keys must stop the attack."""
BEYOND = (
    "The paper's attackers who know nothing of a key try a random one. Ours also estimates one from what the victim's "
    "updates do to its own fakes, which the paper does not try: it cannot choose whose class that brings out, so "
    "`beyond_any` is what to read. Its settings are the first that were tried, on other seeds than any in these "
    "tables."
)
PUBLISHED = claims(
    ("With the exact key the attacker reconstructs images of the class with high visual similarity.", "5.3 I, Fig. 4"),
    ("With random keys a classifier of MNIST recognises 0 % of the generated examples.", "5.3 III, Fig. 6"),
    ("Short keys let the attacker learn some class of faces; long ones do not.", "5.3 III, Fig. 7"),
)


def plans(scope: Scope) -> Plans:
    """Attack with a random key, with the victim's, and with one that is estimated from the victim's updates."""
    estimated: Plans = {}
    for study in scope.studies:
        defences = [ClassKeys(dimensions=dimensions) for dimensions in study.estimated]
        for repeat, audit in enumerate(audits.repeated_audits(study, BY_UPDATES) if defences else []):
            attacks = {ESTIMATED: audits.attack_in(study, repeat, class_key="estimated")}
            how = ", with a key estimated from updates"
            estimated[audit] = audits.plan_attack(scope, study, repeat, how, defences, attacks, bare=False)
    return audits.plan_attacks_without_key(scope) | audits.plan_attacks_with_key(scope) | estimated


def rows(scope: Scope, records: Records) -> list[Row]:
    """Return the null view, the plain framework, the exact key, random keys of all lengths, and estimated ones."""
    return [row for study in scope.studies for row in _rows(study, records)]


def checks(rows: Sequence[Row]) -> list[Check]:
    """Ask whether the attack works where scores are known, and is stopped by long keys that it does not know."""
    verdicts = []
    for (name,), own in groups(rows, "data_set"):
        verdicts += [
            at_least(
                f"Samples recognised as the victim's class, {words}, {name}",
                value_at(own, "recognised", experiment=experiment),
                audits.LEAKS,
            )
            for words, experiment in (("plain framework", PLAIN), ("exact key", WITH_EXACT))
        ]
        verdicts.append(
            at_most(
                f"Samples recognised as the victim's class, noise in place of its updates, {name}",
                value_at(own, "recognised", experiment=NOTHING),
                audits.STOPPED,
            )
        )
        for words, experiment in ((RANDOM, WITH_RANDOM), (ESTIMATED, WITH_ESTIMATED)):
            for row in rows_where(own, experiment=experiment):
                dimensions = number(row, "dimensions") or 0
                who = f"{words} of {dimensions:,.0f}, {name}"
                if dimensions >= LONG:
                    verdicts.append(audits.check_stopped(row, who))
                if dimensions >= LONG and experiment == WITH_ESTIMATED:
                    verdicts.append(audits.check_any(row, who))
    return verdicts


def _rows(study: Study, records: Records) -> list[Row]:
    blind, seeing, estimating = (
        audits.repeated_audits(study, part) for part in (audits.GUESSED, audits.KNOWN, BY_UPDATES)
    )
    known = ClassKeys(dimensions=study.dimensions)
    return [
        {**_place(study, NOTHING, 0), **audits.score_columns(records.nulls, blind, Undefended(), RANDOM)},
        {**_place(study, PLAIN, 0), **audits.score_columns(records, blind, Undefended(), RANDOM)},
        {**_place(study, WITH_EXACT, study.dimensions), **audits.score_columns(records, seeing, known, EXACT)},
        *(
            {
                **_place(study, WITH_RANDOM, dimensions),
                **audits.score_columns(records, blind, ClassKeys(dimensions=dimensions), RANDOM),
            }
            for dimensions in study.guessed
        ),
        *(
            {
                **_place(study, WITH_ESTIMATED, dimensions),
                **audits.score_columns(records, estimating, ClassKeys(dimensions=dimensions), ESTIMATED),
            }
            for dimensions in study.estimated
        ),
    ]


def _place(study: Study, experiment: str, dimensions: int) -> Row:
    return {"data_set": study.name, "experiment": experiment, "dimensions": dimensions}


EXPERIMENT = Experiment(
    table="experiments",
    keys=("data_set", "experiment", "dimensions"),
    plans=plans,
    rows=rows,
    published=PUBLISHED,
    checks=checks,
    notes=lambda scope: [BEYOND],
)
