"""Several attackers at once: all participants but one attack that one, each in turn (Fig. 6)."""

from __future__ import annotations

from collections.abc import Sequence

from leaktight.defences.class_keys import ClassKeys
from leaktight.papers.check import Check, at_least
from leaktight.papers.class_keys import audits
from leaktight.papers.class_keys.mechanisms import PLAIN, RANDOM, attempt, frameworks
from leaktight.papers.class_keys.scales import Scope, Study
from leaktight.papers.paper import Experiment, Plans
from leaktight.papers.records import Records
from leaktight.papers.row import Row, claims, number, reading_of
from leaktight.plans.plan import Plan

EACH_VICTIM = (
    "With several attackers each participant is the only victim once, all others attack it, and intervals are over "
    "these victims, each with a seed of its own. In the paper all five attack at the same time; then nobody's "
    "examples are those of an honest party."
)
PUBLISHED = claims(("Five participants that all attack fail at 16,384 dimensions.", "5.3 III, Fig. 6"))


def plans(scope: Scope) -> Plans:
    """Let several attack where there are more than two participants, each of whom is the victim once."""
    return {
        _audit(study, victim): _plan(scope, study, victim)
        for study in scope.studies
        if study.crowd > 2
        for victim in range(study.crowd)
    }


def rows(scope: Scope, records: Records) -> list[Row]:
    """Return the plain framework and keys; nothing for a study without several attackers."""
    return [
        {
            "data_set": study.name,
            "attackers": study.crowd - 1,
            "framework": name,
            **audits.score_columns(records, [_audit(study, victim) for victim in range(study.crowd)], defence, RANDOM),
        }
        for study in scope.studies
        if study.crowd > 2
        for name, defence in frameworks((study.longest,)).items()
    ]


def checks(rows: Sequence[Row]) -> list[Check]:
    """Ask whether they succeed on the plain framework, and fail on keys."""
    verdicts = []
    for row in rows:
        crowd = f"{number(row, 'attackers'):.0f} attackers"
        if row["framework"] == PLAIN:
            words = f"Samples recognised as the victim's class, {crowd} on the plain framework, {row['data_set']}"
            verdicts.append(at_least(words, reading_of(row, "recognised"), audits.LEAKS))
        else:
            verdicts.append(audits.check_stopped(row, f"{crowd} with random keys, {row['data_set']}"))
    return verdicts


def _audit(study: Study, victim: int) -> str:
    return audits.audit_name(study.name, "crowd", victim)


def _plan(scope: Scope, study: Study, victim: int) -> Plan:
    """Return an audit in which all participants but one attack that one's first class, with a seed of its own."""
    owned = audits.deal_classes(study.classes, study.crowd)
    attacker, *accomplices = (f"client-{(victim + step) % study.crowd}" for step in range(1, study.crowd))
    attack = study.attack.model_copy(
        update={
            "victim_class": owned[victim][0],
            "class_key": "random",
            "controls": 0,
            "accomplices": tuple(accomplices),
        }
    )
    return Plan(
        title=f"{study.name}: {study.crowd - 1} attackers on class {attack.victim_class}",
        scenarios={f"{study.crowd - 1} attackers": audits.make_federation(study, owned, study.rounds, spare=1)},
        defences=(ClassKeys(dimensions=study.longest),),
        probes={RANDOM: attempt(attack, seat=attacker)},
        grid=audits.at_end(study.crowd, scope.seed + victim),
    )


EXPERIMENT = Experiment(
    table="several_attackers",
    keys=("data_set", "attackers", "framework"),
    plans=plans,
    rows=rows,
    published=PUBLISHED,
    checks=checks,
    notes=lambda scope: [EACH_VICTIM] if any(study.crowd > 2 for study in scope.studies) else [],
)
