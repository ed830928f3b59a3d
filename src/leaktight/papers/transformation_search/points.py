"""Score and PSNR of random policies on Algorithm 1's own semi-trained model and the untrained one (Fig. 2)."""

from __future__ import annotations

from leaktight.core.defence import Undefended
from leaktight.core.metric import Reading
from leaktight.core.probe import Probe
from leaktight.data import TestPart
from leaktight.learning.federated import Federated
from leaktight.models import Factory
from leaktight.papers.paper import Experiment, Plans
from leaktight.papers.records import Records
from leaktight.papers.row import Row, claims, columns, over_runs, reading_of
from leaktight.papers.transformation_search import audits
from leaktight.papers.transformation_search.mechanisms import (
    all_policies,
    as_defence,
    random_policies,
    three_policies,
)
from leaktight.papers.transformation_search.scales import VARIANTS, Study, score_network
from leaktight.papers.transformation_search.semi_trained import FUNCTIONS
from leaktight.plans.plan import Plan
from leaktight.probes import Counterfactual, PrivacyScore
from leaktight.probes.privacy_score import Similarity
from leaktight.transforms.library import LIBRARY, same_as
from leaktight.transforms.policy import Policy

SCORE = "privacy_score"
MODELS = ("semi-trained", "untrained")
"""The models that are attacked. Scores are taken on the first: it saw a tenth of the training data for 50 epochs."""
SIMILARITIES: tuple[Similarity, ...] = ("whole", "per_tensor")
DRAWS = 3
"""Into how many draws the random policies fall."""
ATTACKED = 100
"""The paper attacks the first validation images, and scores on others."""
COUNTERFACTUAL = (
    "Scores and attacks of the tables `points`, `correlation`, `functions` and `curve` are on validation images and "
    "Algorithm 1's own semi-trained model (`points` and `correlation` have the untrained one too). Gradients are made "
    "anew under each policy. Seeds draw images and noise, and the weights of the untrained model; the semi-trained one "
    "is the same under all of them, for the search leaves one."
)
PUBLISHED = claims(("Score and PSNR of 100 random policies lie along a line.", "4.2, Fig. 2"))


def plans(study: Study) -> Plans:
    """Score policies and functions on the semi-trained model, and attack both models under random policies."""
    return {_audit(study): _plan(study, "semi-trained"), _audit(study, "untrained"): _plan(study, "untrained")}


def rows(study: Study, records: Records) -> list[Row]:
    """Return a row for each random policy, after none."""
    rows: list[Row] = []
    draws: list[list[Policy | None]] = [[None], *(list[Policy | None](draw) for draw in compared_draws(study))]
    for draw, policies in enumerate(draws):
        for policy in policies:
            row: Row = {**audits.place_of(study.focus), "policy": audits.name_of(policy), "draw": draw or None}
            for similarity in SIMILARITIES:
                row |= columns(f"{SCORE}{ending(similarity)}", privacy_score(study, records, policy, similarity))
            for model in MODELS:
                attack = _cell(study, records, attack_label(policy), model)
                row |= over_runs(f"psnr{ending(model)}", attack.readings("psnr", "used").values())
                row |= over_runs(f"psnr_original{ending(model)}", attack.readings("psnr", "raw").values())
                row |= over_runs(f"{audits.ABOVE}{ending(model)}", attack.readings(audits.ABOVE, "used").values())
            rows.append(row)
    return rows


def privacy_score(
    study: Study, records: Records, policy: Policy | None, similarity: Similarity = "whole"
) -> Reading | None:
    """Return the privacy score of a policy on the semi-trained model, over seeds; None if it failed."""
    return reading_of(over_runs(SCORE, score_cells(study, records, policy, similarity).readings(SCORE).values()), SCORE)


def score_cells(study: Study, records: Records, policy: Policy | None, similarity: Similarity = "whole") -> Records:
    """Return the cells of a policy's privacy score that were done, one for each seed."""
    return _cell(study, records, score_label(policy, similarity), "semi-trained")


def compared_draws(study: Study) -> list[list[Policy]]:
    """Return the random policies whose score and PSNR are compared, draw by draw."""
    policies = random_policies(study.compared, study.seed, "compared")
    return [list(policies[number::DRAWS]) for number in range(DRAWS)]


def distinct_functions() -> tuple[int, ...]:
    """Return one index for each function of the library that does something of its own, identities among them.

    Example:
        >>> len(distinct_functions())
        28
    """
    return tuple(sorted({same_as(function.index) for function in LIBRARY}))


def score_label(policy: Policy | None, similarity: Similarity = "whole") -> str:
    """Return the label of the probe that scores a policy."""
    return f"{'' if similarity == 'whole' else f'{similarity} '}score of {audits.name_of(policy)}"


def attack_label(policy: Policy | None) -> str:
    """Return the label of the attack on one model under a policy."""
    return f"attack on {audits.name_of(policy)}"


def ending(name: str) -> str:
    """Return how the columns of a model or a similarity end; those of the first one have no ending."""
    return "" if name in (MODELS[0], SIMILARITIES[0]) else f"_{name}"


def _audit(study: Study, model: str = MODELS[0]) -> str:
    return audits.audit_name(study.focus, "scores" if model == MODELS[0] else f"scores-{model}")


def _cell(study: Study, records: Records, label: str, model: str) -> Records:
    return records.where(_audit(study, model), label=label, stage="initial", defence=Undefended()).done


def _scenario(study: Study, model: str) -> Federated:
    """Return a model that is not trained any further, and participants who own validation images."""
    focus = study.focus
    network = score_network(focus.model)
    if model == "semi-trained":
        network = Factory(function=FUNCTIONS[focus.network], weights=study.semi_trained)
    owned = min(ATTACKED, len(focus.data.load().test) // 2)
    subject = focus.model_copy(update={"data": TestPart(data=focus.data, owned=owned), "model": network})
    short = study.model_copy(update={"rounds": 0, "participants": min(study.participants, owned)})
    return audits.make_scenario(short, subject)


def _plan(study: Study, model: str) -> Plan:
    attempt = audits.make_attempt(VARIANTS[audits.ATTACK], study.compared_attack)
    compared = [policy for draw in compared_draws(study) for policy in draw]
    probes: dict[str, Probe] = {attack_label(None): attempt}
    for policy in compared:
        probes[attack_label(policy)] = Counterfactual(defence=as_defence(study, policy), probe=attempt)
    if model == "semi-trained":
        probes |= _scores(study, compared)
    return audits.make_plan(
        audits.make_title(study.focus, f"scores and attacks on the {model} model"),
        _scenario(study, model),
        (),
        probes,
        audits.seeds_from(study, study.few),
        study.compared_attack.victims,
        stages=("initial",),
    )


def _scores(study: Study, compared: list[Policy]) -> dict[str, Probe]:
    """Return the probes that score policies; the curves of those whose course is shown are kept."""
    curves = [None, *three_policies(study).values()]
    functions = [Policy(branches=((index,),)) for index in distinct_functions()]
    both = [*curves, *compared]
    others = [*all_policies(study, study.focus).values(), *functions]
    probes: dict[str, Probe] = {
        score_label(policy, similarity): PrivacyScore(
            policy=policy, samples=study.samples, similarity=similarity, curve=policy in curves
        )
        for policy in both
        for similarity in SIMILARITIES
    }
    known = {score_label(policy): PrivacyScore(policy=policy, samples=study.samples) for policy in others}
    return {**known, **probes}


EXPERIMENT = Experiment(
    table="points",
    keys=(*audits.PLACE, "policy"),
    plans=plans,
    rows=rows,
    published=PUBLISHED,
    notes=lambda study: [COUNTERFACTUAL],
)
