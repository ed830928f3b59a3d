"""What an attacker who knows the policy finds, beside one who does not. A table of our own."""

from __future__ import annotations

from collections.abc import Sequence

from leaktight.core.probe import Probe
from leaktight.core.threat import Knows
from leaktight.papers.check import Check, at_least
from leaktight.papers.comparison import difference, highest
from leaktight.papers.paper import Experiment, Plans
from leaktight.papers.records import Records
from leaktight.papers.row import Row, claims, groups, reading_of, rows_where, value_at
from leaktight.papers.transformation_search import audits
from leaktight.papers.transformation_search.mechanisms import HYBRID, NONE, as_defences, known_policies
from leaktight.papers.transformation_search.scales import VARIANTS, Study

KNOWING = "ats2021-adaptive"
ADAPTIVE = (
    "The second attacker of the table `adaptive` knows the policy, searches for the original image through each "
    "possible transformation with a generic prior of pictures, and starts from the mean public image of the class; "
    "what it finds is to be read off `psnr_original`. The paper has none."
)
PUBLISHED = claims(
    (
        "An adversary may start from class representatives, or use techniques other than matching: left as future "
        "work.",
        "6",
    )
)


def plans(study: Study) -> Plans:
    """Attack with and without knowledge of the policy: one audit, so that both are compared."""
    probes: dict[str, Probe] = {
        audits.ATTACK: audits.make_attempt(VARIANTS[audits.ATTACK], study.adaptive),
        KNOWING: audits.make_attempt(KNOWING, study.adaptive, Knows.DEFENCE, Knows.AUXILIARY),
    }
    plan = audits.make_plan(
        audits.make_title(study.focus, "attacks by who knows the policy"),
        audits.make_scenario(study, study.focus),
        as_defences(study, known_policies(study, study.focus)).values(),
        probes,
        (study.seed,),
        study.adaptive.victims,
        stages=(study.attacked,),
    )
    return {_audit(study): plan}


def rows(study: Study, records: Records) -> list[Row]:
    """Return a row for each known policy and attacker."""
    return [
        {
            **audits.place_of(study.focus),
            "policy": name,
            "attack": attack,
            **audits.attack_columns(study, cells(study, records, attack), [defence]),
        }
        for name, defence in as_defences(study, known_policies(study, study.focus)).items()
        for attack in (audits.ATTACK, KNOWING)
    ]


def cells(study: Study, records: Records, attack: str) -> Records:
    """Return the cells of one of the attackers, under every known policy."""
    return records.where(_audit(study), label=attack, stage=study.attacked)


def checks(rows: Sequence[Row]) -> list[Check]:
    """Ask what is left of the hybrid where the attacker knows it: the best attacker, against the original image."""
    verdicts = []
    for place, own in groups(rows, *audits.PLACE):
        plain = value_at(own, "psnr_original", attack=audits.ATTACK, policy=NONE)
        best = highest([reading_of(row, "psnr_original") for row in rows_where(own, policy=HYBRID)])
        claim = "PSNR of the original(none) - PSNR of the original(hybrid, best of two attackers) in dB"
        verdicts.append(at_least(f"{claim}, {', '.join(place)}", difference(plain, best), audits.DROP))
    return verdicts


def _audit(study: Study) -> str:
    return audits.audit_name(study.focus, "adaptive")


EXPERIMENT = Experiment(
    table="adaptive",
    keys=(*audits.PLACE, "policy", "attack"),
    plans=plans,
    rows=rows,
    published=PUBLISHED,
    checks=checks,
    notes=lambda study: [ADAPTIVE],
)
