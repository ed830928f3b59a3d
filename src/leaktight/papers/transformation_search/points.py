"""Score and PSNR of random policies, on the untrained, the semi-trained and the trained model (Fig. 2)."""

from __future__ import annotations

from leaktight.core.defence import Undefended
from leaktight.core.metric import Reading
from leaktight.core.probe import Probe
from leaktight.papers.paper import Experiment, Plans
from leaktight.papers.records import Records
from leaktight.papers.row import Row, claims, columns
from leaktight.papers.transformation_search import audits
from leaktight.papers.transformation_search.mechanisms import all_policies, as_defence, random_policies
from leaktight.papers.transformation_search.scales import VARIANTS, Study
from leaktight.plans.plan import Plan, Stage
from leaktight.probes import Counterfactual, PrivacyScore
from leaktight.transforms.library import LIBRARY, same_as
from leaktight.transforms.policy import Policy

SCORE = "privacy_score"
STAGES: dict[str, Stage] = {"untrained": "initial", "semi-trained": "early", "trained": "end"}
"""The model that is scored or attacked, and at which stage of the training run it is taken."""
COUNTERFACTUAL = (
    "Scores and attacks of the tables `points` and `correlation` are on one undefended training, whose gradients are "
    "made anew under each policy; its semi-trained model is that after a tenth of the rounds."
)
PUBLISHED = claims(("Score and PSNR of 100 random policies lie along a line.", "4.2, Fig. 2"))


def plans(study: Study) -> Plans:
    """Score policies and functions on one undefended training run, and attack it under random policies (Fig. 2, 5)."""
    return {_audit(study): _plan(study)}


def rows(study: Study, records: Records) -> list[Row]:
    """Return a row for each random policy, after none."""
    rows: list[Row] = []
    for policy in (None, *compared_policies(study)):
        row: Row = {**audits.place_of(study.focus), "policy": audits.name_of(policy)}
        for model, stage in STAGES.items():
            row |= columns(f"{SCORE}{ending(model)}", privacy_score(study, records, policy, stage))
            attack = _cell(study, records, attack_label(policy), stage)
            for name, against in (("psnr", "used"), ("psnr_original", "raw")):
                row |= columns(f"{name}{ending(model)}", attack.reading("psnr", against))
        rows.append(row)
    return rows


def privacy_score(study: Study, records: Records, policy: Policy | None, stage: Stage) -> Reading | None:
    """Return the privacy score of a policy on the model of a stage; None if it failed."""
    return _cell(study, records, score_label(policy), stage).reading(SCORE)


def compared_policies(study: Study) -> tuple[Policy, ...]:
    """Return the random policies whose score and PSNR are compared."""
    return random_policies(study.compared, study.seed, "compared")


def distinct_functions() -> tuple[int, ...]:
    """Return one index for each function of the library that does something of its own, identities among them.

    Example:
        >>> len(distinct_functions())
        28
    """
    return tuple(sorted({same_as(function.index) for function in LIBRARY}))


def score_label(policy: Policy | None) -> str:
    """Return the label of the probe that scores a policy."""
    return f"score of {audits.name_of(policy)}"


def attack_label(policy: Policy | None) -> str:
    """Return the label of the attack on one model under a policy."""
    return f"attack on {audits.name_of(policy)}"


def ending(model: str) -> str:
    """Return how the columns of a model end."""
    return "" if model == "semi-trained" else f"_{model}"


def _audit(study: Study) -> str:
    return audits.audit_name(study.focus, "scores")


def _cell(study: Study, records: Records, label: str, stage: Stage) -> Records:
    return records.where(_audit(study), label=label, stage=stage, defence=Undefended()).done


def _plan(study: Study) -> Plan:
    attempt = audits.make_attempt(VARIANTS[audits.ATTACK], study.compared_attack)
    compared = compared_policies(study)
    probes: dict[str, Probe] = {score_label(None): PrivacyScore(samples=study.samples), attack_label(None): attempt}
    for policy in compared:
        probes[attack_label(policy)] = Counterfactual(defence=as_defence(study, policy), probe=attempt)
    functions = [Policy(branches=((index,),)) for index in distinct_functions()]
    for policy in (*compared, *all_policies(study, study.focus).values(), *functions):
        probes[score_label(policy)] = PrivacyScore(policy=policy, samples=study.samples)
    return audits.make_plan(
        audits.make_title(study.focus, "scores, and attacks on one model"),
        audits.make_scenario(study, study.focus),
        (),
        probes,
        (study.seed,),
        study.compared_attack.victims,
        stages=tuple(STAGES.values()),
    )


EXPERIMENT = Experiment(
    table="points",
    keys=(*audits.PLACE, "policy"),
    plans=plans,
    rows=rows,
    published=PUBLISHED,
    notes=lambda study: [COUNTERFACTUAL],
)
