"""PSNR and accuracy with the policies of another data set (Table 4)."""

from __future__ import annotations

from collections.abc import Sequence

from leaktight.papers.check import Check, above, at_least
from leaktight.papers.paper import Experiment, Plans
from leaktight.papers.records import Records
from leaktight.papers.row import Row, claims, groups, value_at
from leaktight.papers.transformation_search import audits
from leaktight.papers.transformation_search.mechanisms import (
    FIRST,
    HYBRID,
    NONE,
    SECOND,
    all_policies,
    as_defences,
    grouped_policies,
)
from leaktight.papers.transformation_search.policies import check_random, published_columns
from leaktight.papers.transformation_search.scales import CONVNET, FASHION, RESNET, VARIANTS, Study, Subject
from leaktight.plans.plan import Plan

LOST = 0.07
"""How much accuracy the hybrid costs at most."""
# Table 4: PSNR and accuracy with the policies of CIFAR100.
TABLE_4: dict[str, dict[str, tuple[float, float]]] = {
    RESNET: {NONE: (10.04, 95.03), FIRST: (7.5, 87.95), SECOND: (8.13, 91.29), HYBRID: (8.14, 91.49)},
    CONVNET: {NONE: (9.12, 94.25), FIRST: (7.51, 74.81), SECOND: (7.68, 88.29), HYBRID: (7.11, 87.51)},
}
PUBLISHED: list[Row] = [
    *(
        {"data_set": FASHION, "network": network, "policy": name, **published_columns(*pair)}
        for network, rows in TABLE_4.items()
        for name, pair in rows.items()
    ),
    *claims(
        (
            "Policies of CIFAR100 work on F-MNIST too: 10.04 to 8.14 dB with ResNet20, accuracy from 95.03 to 91.49 %.",
            "5.3, Table 4",
        )
    ),
]


def plans(study: Study) -> Plans:
    """Train under the policies of another subject."""
    return {_audit(subject): _plan(study, subject) for subject in study.transfers}


def rows(study: Study, records: Records) -> list[Row]:
    """Return a row for each policy."""
    return [row for subject in study.transfers for row in _rows(study, subject, records)]


def checks(rows: Sequence[Row]) -> list[Check]:
    """Ask whether the hybrid of another data set still hides images, more than random policies, at a bounded loss."""
    verdicts = []
    for key, own in groups(rows, *audits.PLACE):
        place = ", ".join(key)
        drop, change = audits.drop_with(own, HYBRID), value_at(own, "accuracy_change", policy=HYBRID)
        verdicts += [
            above(f"Transfer: PSNR above chance(none) - that(hybrid) in dB, {place}", drop, 0),
            at_least(f"Transfer: accuracy(hybrid) - accuracy(none), {place}", change, -LOST),
            *check_random(own, f"transfer, {place}"),
        ]
    return verdicts


def _audit(subject: Subject) -> str:
    return audits.audit_name(subject, "transfer")


def _plan(study: Study, subject: Subject) -> Plan:
    return audits.make_plan(
        audits.make_title(subject, f"policies of {subject.source}"),
        audits.make_scenario(study, subject),
        as_defences(study, all_policies(_without_published(study), subject)).values(),
        {audits.ATTACK: audits.make_attempt(VARIANTS[audits.ATTACK], study.attack)},
        audits.seeds_from(study, study.few),
        study.attack.victims,
        stages=(study.attacked,),
    )


def _without_published(study: Study) -> Study:
    """Return the study without the paper's hybrids: its Table 4 has those of the other data set alone."""
    return study.model_copy(update={"published": ()})


def _rows(study: Study, subject: Subject, records: Records) -> list[Row]:
    attacked = records.where(_audit(subject), label=audits.ATTACK, stage=study.attacked)
    return [
        {
            **audits.place_of(subject),
            "policy": name,
            "functions": "" if policy is None else str(policy),
            **audits.attack_columns(study, attacked, defences),
            **audits.learning_columns(study, attacked, defences),
        }
        for name, (policy, defences) in grouped_policies(_without_published(study), subject).items()
    ]


EXPERIMENT = Experiment(
    table="transfer",
    keys=(*audits.PLACE, "policy"),
    plans=plans,
    rows=rows,
    published=PUBLISHED,
    checks=checks,
)
