"""Six attacks with no, a random and the hybrid policy (Table 2)."""

from __future__ import annotations

from collections.abc import Sequence

from leaktight.core.probe import Probe
from leaktight.papers.check import Check, above
from leaktight.papers.paper import Experiment, Plans
from leaktight.papers.records import Records
from leaktight.papers.row import Row, claims, groups, rows_where
from leaktight.papers.transformation_search import audits
from leaktight.papers.transformation_search.mechanisms import HYBRID, NONE, three_defences
from leaktight.papers.transformation_search.scales import CIFAR100, RESNET, VARIANTS, Study
from leaktight.probes import SimilarityPath

PATH = "similarity"
# Table 2: PSNR with no policy and with the hybrid, on CIFAR100 with ResNet20.
TABLE_2: dict[str, tuple[float, float]] = {
    "LBFGS+L2": (6.93, 4.79),
    "Adam+Cosine": (13.88, 7.64),
    "LBFGS+COS": (10.33, 6.16),
    "Adam+L1": (9.99, 6.97),
    "Adam+L2": (10.55, 7.61),
    "SGD+COS": (14.04, 7.71),
}
NUMBERS: list[Row] = [
    {"data_set": CIFAR100, "network": RESNET, "attack": attack, "policy": policy, "psnr": psnr}
    for attack, both in TABLE_2.items()
    for policy, psnr in zip((NONE, HYBRID), both, strict=True)
]
FAILED = (
    "Of the six attacks in the table `attacks`, those that are no better than chance without a policy say nothing of "
    "the hybrid: their checks have no number."
)
PUBLISHED = [*NUMBERS, *claims(("The hybrid lowers PSNR under all six attacks, by 2.1 to 6.3 dB.", "5.3, Table 2"))]


def plans(study: Study) -> Plans:
    """Attack in six ways, and follow one attack layer by layer (Fig. 6)."""
    probes: dict[str, Probe] = {name: audits.make_attempt(VARIANTS[name], study.variants) for name in VARIANTS}
    probes[PATH] = SimilarityPath(
        attack=audits.make_attempt(VARIANTS[audits.ATTACK], study.path).attack, threat=audits.make_threat()
    )
    plan = audits.make_plan(
        audits.make_title(study.focus, "six attacks"),
        audits.make_scenario(study, study.focus),
        three_defences(study).values(),
        probes,
        audits.seeds_from(study, study.few),
        study.variants.victims,
        stages=(study.attacked,),
    )
    return {_audit(study): plan}


def rows(study: Study, records: Records) -> list[Row]:
    """Return a row for each attack and policy."""
    return [
        {
            **audits.place_of(study.focus),
            "attack": attack,
            "policy": name,
            **audits.attack_columns(study, cells(study, records, attack), [defence]),
        }
        for attack in VARIANTS
        for name, defence in three_defences(study).items()
    ]


def cells(study: Study, records: Records, probe: str) -> Records:
    """Return the cells of one of the probes, under all three defences."""
    return records.where(_audit(study), label=probe, stage=study.attacked)


def checks(rows: Sequence[Row]) -> list[Check]:
    """Ask whether the hybrid lowers PSNR under each attack that works without a policy."""
    return [
        above(
            f"PSNR above chance(none) - that(hybrid) in dB by {attack}, {', '.join(place)}",
            audits.drop_with(rows_where(own, attack=attack), HYBRID),
            0,
        )
        for place, own in groups(rows, *audits.PLACE)
        for attack in VARIANTS
    ]


def _audit(study: Study) -> str:
    return audits.audit_name(study.focus, "attacks")


EXPERIMENT = Experiment(
    table="attacks",
    keys=(*audits.PLACE, "attack", "policy"),
    plans=plans,
    rows=rows,
    published=PUBLISHED,
    checks=checks,
    notes=lambda study: [FAILED],
)
