"""Attacks early in a training, after 0, 10 and 50 steps, also by who knows the policy (after Balunovic et al. 2022)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from leaktight.core.probe import Probe
from leaktight.papers.check import Check, above, at_least
from leaktight.papers.comparison import difference, highest
from leaktight.papers.paper import Experiment, Plans
from leaktight.papers.records import Records
from leaktight.papers.row import Row, claims, groups, reading_of, rows_where
from leaktight.papers.transformation_search import audits
from leaktight.papers.transformation_search.audits import ATTACK, STRONGEST
from leaktight.papers.transformation_search.mechanisms import HYBRID, NONE, as_defences, known_policies
from leaktight.papers.transformation_search.scales import VARIANTS, Study
from leaktight.plans.plan import Plan, Stage
from leaktight.transforms.policy import Policy

ATTACKS = (ATTACK, STRONGEST)
ABOUT = (
    "The table `early` is after Balunovic et al. (2022), who attack these policies from the start of a training on, "
    "score against the transformed images, and find them broken early on. One attacker is that of Gao et al.; the "
    "other, ours, is the strongest suite, who knows the policy and public images, and searches for the original image: "
    "what it finds is to be read off `psnr_above_chance_original`. Neither paper has such an attacker. After some "
    "steps only none and the hybrid are attacked, under one seed; no check is about that."
)
PUBLISHED = claims(
    (
        "An adversary may start from class representatives, or use techniques other than matching: left as future "
        "work.",
        "6",
    ),
    (
        "These policies protect images only later in a training: early on, gradients give them away.",
        "Balunovic et al. 2022",
    ),
)


def plans(study: Study) -> Plans:
    """Attack with and without knowledge of the policy: before the training, after a short and after a longer one.

    Checks are about the time before it, so that only this has every policy and several seeds.
    """
    known = known_policies(study, study.focus)
    later = {HYBRID: known[HYBRID]}
    return {
        _audit(study, 0): _plan(study, 0, known, study.few),
        **{_audit(study, steps): _plan(study, steps, later, 1) for steps in study.early},
    }


def rows(study: Study, records: Records) -> list[Row]:
    """Return a row for each known policy, moment and attacker; after some steps for none and the hybrid alone."""
    return [
        {
            **audits.place_of(study.focus),
            "policy": name,
            "steps": steps,
            "attack": attack,
            **audits.attack_columns(study, cells(study, records, attack, steps), [defence]),
        }
        for name, defence in as_defences(study, known_policies(study, study.focus)).items()
        for steps in (0, *study.early)
        for attack in ATTACKS
        if not steps or name in (NONE, HYBRID)
    ]


def cells(study: Study, records: Records, attack: str, steps: int = 0) -> Records:
    """Return the cells of one of the attackers after some steps, under every policy that is attacked then."""
    return records.where(_audit(study, steps), label=attack, stage=_stage(steps))


def checks(rows: Sequence[Row]) -> list[Check]:
    """Ask what the hybrid hides of the original where attackers know it, by the best of them with and without it."""
    verdicts = []
    for place, own in groups(rows, *audits.PLACE):
        column, name = f"{audits.ABOVE}_original", ", ".join(place)
        first = rows_where(own, steps=0)
        plain, hidden = (
            highest([reading_of(row, column) for row in rows_where(first, policy=policy)]) for policy in (NONE, HYBRID)
        )
        claim = "PSNR of the original above chance(none) - that(hybrid) in dB, best of two attackers on each"
        verdicts += [
            at_least(f"{claim}, before the training, {name}", difference(plain, hidden), audits.DROP),
            above(f"PSNR of the original above chance(hybrid, best of two attackers), before it, {name}", hidden, 0),
        ]
    return verdicts


def _audit(study: Study, rounds: int) -> str:
    return audits.audit_name(study.focus, f"after-{rounds}")


def _stage(rounds: int) -> Stage:
    return "end" if rounds else "initial"


def _plan(study: Study, rounds: int, policies: Mapping[str, Policy], seeds: int) -> Plan:
    probes: dict[str, Probe] = {
        ATTACK: audits.make_attempt(VARIANTS[ATTACK], study.adaptive),
        STRONGEST: audits.make_strongest(study.adaptive),
    }
    short = study.model_copy(update={"rounds": rounds})
    return audits.make_plan(
        audits.make_title(study.focus, f"attacks after {rounds} steps, by who knows the policy too"),
        audits.make_scenario(short, study.focus),
        as_defences(study, policies).values(),
        probes,
        audits.seeds_from(study, seeds),
        study.adaptive.victims,
        stages=(_stage(rounds),),
    )


EXPERIMENT = Experiment(
    table="early",
    keys=(*audits.PLACE, "policy", "steps", "attack"),
    plans=plans,
    rows=rows,
    published=PUBLISHED,
    checks=checks,
    notes=lambda study: [ABOUT],
)
