"""The published policies on another network, where the attack may fail even without them. A table of our own."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from leaktight.core.defence import Undefended
from leaktight.core.probe import Probe
from leaktight.papers.check import Check, above
from leaktight.papers.paper import Experiment, Plans
from leaktight.papers.records import Records
from leaktight.papers.row import Row, claims, groups, over_runs
from leaktight.papers.transformation_search import audits
from leaktight.papers.transformation_search.mechanisms import as_defence, published_parts
from leaktight.papers.transformation_search.points import attack_label
from leaktight.papers.transformation_search.scales import VARIANTS, Study, Subject
from leaktight.plans.plan import Plan
from leaktight.probes import Counterfactual

NETWORKS = (
    "The table `networks` is on CIFAR10 and a ConvNet of an eighth of the paper's width, after one epoch of an "
    "undefended training. Where PSNR is below `chance` even with no policy, the attack failed, and PSNR under a policy "
    "says nothing of what the policy hides: it changes with how far the policy moves images from whatever the attack "
    "ends at. The published numbers are of CIFAR100 and wider networks, which we did not attack."
)
PUBLISHED = claims(
    (
        "On CIFAR100 with ResNet20 PSNR is 13.88 dB with no policy, 6.58 with 3-1-7 and 8.56 with 43-18-18; with "
        "ConvNet 13.07, 5.76 with 21-13-3 and 7.75 with 7-4-15.",
        "Table 1",
    )
)


def plans(study: Study) -> Plans:
    """Attack an undefended training run of another network under the published policies, after one epoch."""
    return {} if study.other is None else {_audit(study.other): _plan(study, study.other)}


def rows(study: Study, records: Records) -> list[Row]:
    """Return a row for each published policy, after none; nothing where there is no other network."""
    other = study.other
    if other is None:
        return []
    return [
        {**audits.place_of(other), "policy": audits.name_of(policy), **_columns(other, records, attack_label(policy))}
        for policy in (None, *published_parts())
    ]


def checks(rows: Sequence[Row]) -> list[Check]:
    """Ask whether the attack on the other network works at all."""
    return [
        above(
            f"PSNR(none) - its chance level in dB: the attack works, {', '.join(place)}, published policies",
            audits.gain_over_chance(own),
            0,
        )
        for place, own in groups(rows, *audits.PLACE)
    ]


def notes(study: Study) -> list[str]:
    """Say how long its attacks are, and what the table is about."""
    if study.other is None:
        return []
    return [f"Attacks of the table `networks` take {study.other_attack.iterations} iterations.", NETWORKS]


def _audit(subject: Subject) -> str:
    return audits.audit_name(subject, "networks")


def _plan(study: Study, subject: Subject) -> Plan:
    attempt = audits.make_attempt(VARIANTS[audits.ATTACK], study.other_attack)
    probes: dict[str, Probe] = {attack_label(None): attempt}
    for policy in published_parts():
        probes[attack_label(policy)] = Counterfactual(defence=as_defence(study, policy), probe=attempt)
    scenario = audits.make_scenario(study.model_copy(update={"epochs": 1}), subject)
    title = audits.make_title(subject, "attacks under the published policies")
    seeds = audits.seeds_from(study, study.few)
    return audits.make_plan(title, scenario, (), probes, seeds, study.other_attack.victims, stages=("end",))


def _columns(subject: Subject, records: Records, label: str) -> Row:
    cell = records.where(_audit(subject), label=label, stage="end", defence=Undefended()).done
    used, raw = (cell.readings(audits.PSNR, against) for against in ("used", "raw"))
    above = cell.readings(audits.ABOVE, "used")
    chances = [used[seed].value - one.value for seed, one in above.items()]
    return {
        **over_runs(audits.PSNR, used.values()),
        **over_runs("psnr_original", raw.values()),
        "chance": fmean(chances) if chances else None,
        **over_runs(audits.ABOVE, above.values()),
    }


EXPERIMENT = Experiment(
    table="networks",
    keys=(*audits.PLACE, "policy"),
    plans=plans,
    rows=rows,
    published=PUBLISHED,
    checks=checks,
    notes=notes,
)
