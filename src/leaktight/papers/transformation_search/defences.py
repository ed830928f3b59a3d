"""The hybrid beside the paper's other defences: pruning and noise (Table 3)."""

from __future__ import annotations

from collections.abc import Sequence

from leaktight.core.defence import Defence
from leaktight.papers.check import Check, above, at_least
from leaktight.papers.comparison import difference, highest, lowest
from leaktight.papers.paper import Experiment
from leaktight.papers.records import Records
from leaktight.papers.row import Row, claims, groups, number, reading_of
from leaktight.papers.transformation_search import audits
from leaktight.papers.transformation_search.mechanisms import BASELINES, HYBRID, NONE, RANDOM, grouped_policies
from leaktight.papers.transformation_search.policies import cells, plan_policies, published_columns
from leaktight.papers.transformation_search.scales import CIFAR100, RESNET, Study, Subject

NOISE = (
    "Gaussian and Laplace noise have a standard deviation and a scale of 0.001 and 0.01; the paper writes N(0, 0.001), "
    "which may mean a variance."
)
# Table 3: PSNR and accuracy, on CIFAR100 with ResNet20.
TABLE_3: dict[str, tuple[float, float]] = {
    NONE: (13.88, 76.88),
    "pruning 70%": (12.00, 77.12),
    "pruning 95%": (10.07, 70.12),
    "pruning 99%": (10.93, 58.33),
    "Laplace 0.001": (11.85, 74.12),
    "Laplace 0.01": (9.67, 39.59),
    "Gaussian 0.001": (12.71, 75.67),
    "Gaussian 0.01": (11.44, 48.2),
    HYBRID: (7.64, 77.92),
}
PUBLISHED: list[Row] = [
    *(
        {"data_set": CIFAR100, "network": RESNET, "defence": name, **published_columns(*pair)}
        for name, pair in TABLE_3.items()
    ),
    *claims(
        (
            "Pruning and noise leave PSNR at 9.7 to 12.7 dB, and the stronger ones cost 7 to 37 points of accuracy; "
            "the hybrid has 7.64 dB at no loss.",
            "5.3, Table 3",
        )
    ),
]


def rows(study: Study, records: Records) -> list[Row]:
    """Return a row for each defence, beside none, random policies and the hybrid."""
    return [
        {
            **audits.place_of(subject),
            "defence": name,
            **audits.attack_columns(study, cells(study, subject, records), defences),
            **audits.learning_columns(study, cells(study, subject, records), defences),
        }
        for subject in study.subjects
        for name, defences in _comparison(study, subject).items()
    ]


def checks(rows: Sequence[Row]) -> list[Check]:
    """Compare the hybrid with the other defences that keep as much accuracy, and with the most accurate one."""
    verdicts = []
    for key, own in groups(rows, *audits.PLACE):
        place, by_name = ", ".join(key), {str(row["defence"]): row for row in own}
        hybrid, others = by_name[HYBRID], [by_name[name] for name in BASELINES]
        accurate = lowest([reading_of(row, audits.ABOVE) for row in others if _is_as_accurate(row, hybrid)])
        most = highest([reading_of(row, audits.ACCURACY) for row in others])
        verdicts += [
            above(
                f"PSNR above chance(lowest of the other defences that are as accurate) - that(hybrid) in dB, {place}",
                difference(accurate, reading_of(hybrid, audits.ABOVE)),
                0,
            ),
            at_least(
                f"Accuracy(hybrid) - accuracy(most accurate other defence), {place}",
                difference(reading_of(hybrid, audits.ACCURACY), most),
                -audits.EQUAL,
            ),
        ]
    return verdicts


def _comparison(study: Study, subject: Subject) -> dict[str, list[Defence]]:
    policies = {name: defences for name, (_, defences) in grouped_policies(study, subject).items()}
    others = {name: [defence] for name, defence in BASELINES.items()}
    return {NONE: policies[NONE], **others, RANDOM: policies[RANDOM], HYBRID: policies[HYBRID]}


def _is_as_accurate(row: Row, other: Row) -> bool:
    one, least = number(row, audits.ACCURACY), number(other, audits.ACCURACY)
    return one is not None and least is not None and one >= least - audits.EQUAL


EXPERIMENT = Experiment(
    table="defences",
    keys=(*audits.PLACE, "defence"),
    plans=plan_policies,
    rows=rows,
    published=PUBLISHED,
    checks=checks,
    notes=lambda study: [NOISE],
)
