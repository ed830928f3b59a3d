"""PSNR and accuracy with no, random, searched and published policies, and their scores (Table 1)."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from leaktight.attacks.presets import preset
from leaktight.core.defence import Undefended
from leaktight.core.metric import Reading
from leaktight.core.probe import Probe
from leaktight.papers.check import Check, above, at_least
from leaktight.papers.comparison import difference, mean_of
from leaktight.papers.paper import Experiment, Plans
from leaktight.papers.records import Records
from leaktight.papers.row import Row, claims, groups, value_at
from leaktight.papers.transformation_search import audits, points
from leaktight.papers.transformation_search.mechanisms import (
    BASELINES,
    FIRST,
    HYBRID,
    NONE,
    RANDOM,
    SECOND,
    all_policies,
    as_defences,
    grouped_policies,
    trained_random_policies,
)
from leaktight.papers.transformation_search.points import SCORE, privacy_score, score_label
from leaktight.papers.transformation_search.scales import (
    CIFAR100,
    CONVNET,
    FASHION,
    RESNET,
    VARIANTS,
    Study,
    Subject,
)
from leaktight.plans.plan import Plan
from leaktight.probes import AccuracyScore
from leaktight.transforms.policy import Policy

LOST = {FASHION: 0.03}
"""How much accuracy the hybrid costs at most; on other sets a hundredth counts as nothing."""
ORDER = (NONE, RANDOM, FIRST, SECOND, HYBRID)
# Table 1: PSNR in dB and accuracy in percent, for none, random policies, both that were found, and their hybrid.
TABLE_1: dict[tuple[str, str], tuple[tuple[float, float], ...]] = {
    (CIFAR100, RESNET): ((13.88, 76.88), (11.41, 73.94), (6.579, 70.56), (8.56, 77.27), (7.64, 77.92)),
    (CIFAR100, CONVNET): ((13.07, 70.13), (12.18, 69.91), (5.76, 66.98), (7.75, 69.67), (6.83, 70.27)),
    (FASHION, RESNET): ((10.04, 95.03), (9.23, 91.16), (7.01, 91.33), (7.75, 89.41), (7.60, 92.23)),
    (FASHION, CONVNET): ((9.12, 94.25), (8.83, 90.18), (7.01, 91.33), (6.75, 90.56), (6.94, 91.35)),
}
FOUND: dict[tuple[str, str], tuple[str, str]] = {
    (CIFAR100, RESNET): ("3-1-7", "43-18-18"),
    (CIFAR100, CONVNET): ("21-13-3", "7-4-15"),
    (FASHION, RESNET): ("19-15-45", "2-43-21"),
    (FASHION, CONVNET): ("42-28-42", "14-48-48"),
}
CLAIMS = claims(
    (
        "On CIFAR100 with ResNet20 the hybrid brings PSNR from 13.88 to 7.64 dB, accuracy from 76.88 to 77.92 %.",
        "Table 1",
    ),
    ("Randomly selected policies fail to invalidate reconstruction attacks.", "5.3, Table 1"),
)


def plans(study: Study) -> Plans:
    """Train under every policy and every other defence and attack each model; score policies on the focus."""
    return plan_policies(study) | points.plans(study) | {_untrained_audit(study): _plan_accuracy_scores(study)}


def plan_policies(study: Study) -> Plans:
    """Train under every policy and every other defence, and attack each model (Tables 1 and 3)."""
    return {_audit(subject): _policies(study, subject) for subject in study.subjects}


def rows(study: Study, records: Records) -> list[Row]:
    """Return a row for each policy; random ones are a row together."""
    return [row for subject in study.subjects for row in _rows(study, subject, records)]


def cells(study: Study, subject: Subject, records: Records) -> Records:
    """Return the attacks on a subject's models, under every policy and other defence."""
    return records.where(_audit(subject), label=audits.ATTACK, stage=study.attacked)


def published_rows() -> list[Row]:
    """Return Table 1, and what the text says of it."""
    rows: list[Row] = []
    for (data_set, network), numbers in TABLE_1.items():
        first, second = FOUND[data_set, network]
        functions = ("", "", first, second, f"{first}+{second}")
        rows += [
            {"data_set": data_set, "network": network, "policy": policy, "functions": text, **published_columns(*pair)}
            for policy, text, pair in zip(ORDER, functions, numbers, strict=True)
        ]
    return [*rows, *CLAIMS]


def published_columns(psnr: float, percent: float) -> Row:
    """Return a published PSNR and accuracy as columns."""
    return {audits.PSNR: psnr, audits.ACCURACY: round(percent / 100, 4)}


def checks(rows: Sequence[Row]) -> list[Check]:
    """Ask what the hybrid does to PSNR and accuracy, beside random policies and the two that it is made of."""
    verdicts = []
    for (data_set, network), own in groups(rows, *audits.PLACE):
        place = f"{data_set}, {network}"
        hybrid, *parts = (value_at(own, audits.ACCURACY, policy=name) for name in (HYBRID, FIRST, SECOND))
        verdicts += [
            above(f"PSNR(none) - its chance level in dB: the attack works, {place}", audits.gain_over_chance(own), 0),
            at_least(
                f"PSNR above chance(none) - that(hybrid) in dB, {place}",
                audits.drop_with(own, HYBRID),
                audits.DROP,
            ),
            at_least(
                f"Accuracy(hybrid) - accuracy(none), {place}",
                value_at(own, "accuracy_change", policy=HYBRID),
                -LOST.get(data_set, 0.01),
            ),
            *check_random(own, place),
            above(
                f"Accuracy(hybrid) - mean accuracy of its two policies, {place}", difference(hybrid, mean_of(parts)), 0
            ),
        ]
    return verdicts


def check_random(rows: Sequence[Row], place: str) -> list[Check]:
    """Ask whether the attack still works under random policies, and whether the hybrid hides images better."""
    left, hidden = (value_at(rows, audits.ABOVE, policy=name) for name in (RANDOM, HYBRID))
    return [
        above(f"PSNR above chance(random) in dB: random policies do not stop the attack, {place}", left, 0),
        above(f"PSNR above chance(random) - that(hybrid) in dB, {place}", difference(left, hidden), 0),
    ]


def notes(study: Study) -> list[str]:
    """Say how long attacks are, where the paper's are longer."""
    whole = preset(VARIANTS[audits.ATTACK]).to_dict()["iterations"]
    if study.attack.iterations >= whole:
        return []
    return [
        f"Attacks take {study.attack.iterations} iterations in Tables 1, 3 and 4, {study.compared_attack.iterations} "
        f"in Fig. 2, {study.variants.iterations} ({study.variants.lbfgs} of L-BFGS, from at most "
        f"{study.variants.restarts} starts) in Table 2 and {study.adaptive.iterations} in the table `early`; the "
        f"paper's take {whole}, and 2500 in Fig. 2."
    ]


def _audit(subject: Subject) -> str:
    return audits.audit_name(subject, "policies")


def _untrained_audit(study: Study) -> str:
    return audits.audit_name(study.focus, "untrained")


def _policies(study: Study, subject: Subject) -> Plan:
    defences = [*as_defences(study, all_policies(study, subject)).values(), *BASELINES.values()]
    return audits.make_plan(
        audits.make_title(subject, "policies and other defences"),
        audits.make_scenario(study, subject),
        defences,
        {audits.ATTACK: audits.make_attempt(VARIANTS[audits.ATTACK], study.attack)},
        audits.seeds_from(study, study.seeds),
        study.attack.victims,
        stages=(study.attacked,),
    )


def _plan_accuracy_scores(study: Study) -> Plan:
    """Score what policies may cost in accuracy, on the untrained model, on ten batches of public images.

    A seed draws the batch and the signs of its images.
    """
    policies = (None, *all_policies(study, study.focus).values())
    probes: dict[str, Probe] = {
        score_label(policy): AccuracyScore(policy=policy, samples=study.samples) for policy in policies
    }
    scenario = audits.make_scenario(study, study.focus).model_copy(update={"rounds": 0})
    title = audits.make_title(study.focus, "accuracy scores")
    seeds = audits.seeds_from(study, study.search.batches)
    return audits.make_plan(title, scenario, (), probes, seeds, 1, stages=("initial",))


def _rows(study: Study, subject: Subject, records: Records) -> list[Row]:
    attacked = cells(study, subject, records)
    return [
        {
            **audits.place_of(subject),
            "policy": name,
            "functions": "" if policy is None else str(policy),
            **audits.attack_columns(study, attacked, defences),
            **audits.learning_columns(study, attacked, defences),
            **_scores(study, subject, records, name, policy),
        }
        for name, (policy, defences) in grouped_policies(study, subject).items()
    ]


def _scores(study: Study, subject: Subject, records: Records, name: str, policy: Policy | None) -> Row:
    """Return both scores of a policy, the mean of random ones; only those of the focus were measured."""
    if subject != study.focus:
        return {SCORE: None, "accuracy_score": None}
    policies = list(trained_random_policies(study).values()) if name == RANDOM else [policy]
    privacy = [privacy_score(study, records, each) for each in policies]
    accuracies = [_accuracy_scores(study, records, each) for each in policies]
    return {SCORE: _mean(privacy), "accuracy_score": fmean(map(fmean, accuracies)) if all(accuracies) else None}


def _accuracy_scores(study: Study, records: Records, policy: Policy | None) -> list[float]:
    """Return the score of each batch."""
    cell = records.where(_untrained_audit(study), label=score_label(policy), defence=Undefended())
    return [reading.value for reading in cell.done.readings("accuracy_score").values()]


def _mean(readings: Sequence[Reading | None]) -> float | None:
    known = [reading.value for reading in readings if reading is not None]
    return sum(known) / len(known) if known and len(known) == len(readings) else None


EXPERIMENT = Experiment(
    table="policies",
    keys=(*audits.PLACE, "policy"),
    plans=plans,
    rows=rows,
    published=published_rows(),
    checks=checks,
    notes=notes,
)
