"""Several attackers at once: all participants but one attack that one with keys of their own (Fig. 6)."""

from __future__ import annotations

from collections.abc import Sequence

from leaktight.defences.class_keys import ClassKeys
from leaktight.papers.check import Check, at_least
from leaktight.papers.class_keys import audits
from leaktight.papers.class_keys.mechanisms import ATTACKER, PLAIN, RANDOM, attempt, frameworks
from leaktight.papers.class_keys.scales import Scope, Study
from leaktight.papers.paper import Experiment, Plans
from leaktight.papers.records import Records
from leaktight.papers.row import Row, claims, number, reading_of
from leaktight.plans.plan import Plan

PUBLISHED = claims(("Five participants that all attack fail at 16,384 dimensions.", "5.3 III, Fig. 6"))


def plans(scope: Scope) -> Plans:
    """Let several attack where there are more than two participants."""
    return {_audit(study): _plan(scope, study) for study in scope.studies if study.crowd > 2}


def rows(scope: Scope, records: Records) -> list[Row]:
    """Return the plain framework and keys; nothing for a study without several attackers."""
    return [
        {
            "data_set": study.name,
            "attackers": study.crowd - 1,
            "framework": name,
            **audits.score_columns(records, [_audit(study)], defence, RANDOM),
        }
        for study in scope.studies
        if study.crowd > 2
        for name, defence in frameworks((study.dimensions,)).items()
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
            verdicts += audits.check_stopped(row, f"{crowd} with random keys, {row['data_set']}")
    return verdicts


def _audit(study: Study) -> str:
    return audits.audit_name(study.name, "crowd")


def _plan(scope: Scope, study: Study) -> Plan:
    accomplices = tuple(name for number in range(1, study.crowd) if (name := f"client-{number}") != ATTACKER)
    attack = audits.attack_in(study, 0, class_key="random", accomplices=accomplices)
    return Plan(
        title=f"{study.name}: {study.crowd - 1} attackers on class {attack.victim_class}",
        scenarios={
            f"{study.crowd - 1} attackers": audits.make_federation(study, _ownership(study), study.rounds, spare=1)
        },
        defences=(ClassKeys(dimensions=study.dimensions),),
        probes={RANDOM: attempt(attack)},
        grid=audits.at_end(study.crowd, *range(scope.seed, scope.seed + study.seeds)),
    )


def _ownership(study: Study) -> audits.Owned:
    """Return the victim's half of the classes, and the other half dealt out to the attackers."""
    victim, rest = audits.deal_classes(study.classes, 2)
    return victim, *(tuple(rest[place] for place in part) for part in audits.deal_classes(len(rest), study.crowd - 1))


EXPERIMENT = Experiment(
    table="several_attackers",
    keys=("data_set", "attackers", "framework"),
    plans=plans,
    rows=rows,
    published=PUBLISHED,
    checks=checks,
)
