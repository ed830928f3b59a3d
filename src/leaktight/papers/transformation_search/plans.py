"""Plans: the audits that a study takes, once its policies have been searched."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from leaktight.attacks.presets import preset
from leaktight.core.defence import Defence
from leaktight.core.errors import InvalidValue
from leaktight.core.probe import Attempt, Probe
from leaktight.core.threat import Knows, ThreatModel
from leaktight.learning.federated import Federated
from leaktight.learning.optimiser import DecayedSgd, Optimiser, Sgd
from leaktight.learning.protocol import FedSGD
from leaktight.metrics import PSNR, SearchGap
from leaktight.papers.paper import Plans
from leaktight.papers.transformation_search.policies import (
    BASELINES,
    HYBRID,
    NONE,
    all_policies,
    as_defences,
    known_ones,
    published_parts,
    random_ones,
    random_policies,
    transformed,
)
from leaktight.papers.transformation_search.settings import VARIANTS, Strength, Study, Subject
from leaktight.plans.plan import Grid, Plan, Stage
from leaktight.probes import AccuracyScore, Counterfactual, LearningCurve, PrivacyScore, SimilarityPath
from leaktight.transforms.library import LIBRARY, same_as
from leaktight.transforms.policy import Policy

Found = Mapping[str, Policy]
"""The searched hybrid of each subject, by the subject's name."""
POLICIES, SCORES, UNTRAINED, ATTACKS, ADAPTIVE, TRAINING, TRANSFER, NETWORKS = (
    "policies",
    "scores",
    "untrained",
    "attacks",
    "adaptive",
    "training",
    "transfer",
    "networks",
)
STAGES: dict[str, Stage] = {"untrained": "initial", "semi-trained": "early", "trained": "end"}
"""The model that is scored or attacked in Fig. 2, and at which stage of the training it is taken."""
ATTACK = "Adam+Cosine"
KNOWING = "ats2021-adaptive"
PATH, CURVE = "similarity", "accuracy"
MOMENTUM = 0.9


def plans_of(study: Study, found: Found, seed: int) -> Plans:
    """Return the audits of a study by name: every subject's policies, what the focus is asked beside, and transfers."""
    plans = {folder(one, POLICIES): _policies(study, one, found_for(one, found), seed) for one in study.subjects}
    focus = study.focus
    policy = found_for(focus, found)
    plans[folder(focus, SCORES)] = _scores(study, focus, policy, seed)
    plans[folder(focus, UNTRAINED)] = _untrained(study, focus, policy, seed)
    plans[folder(focus, ATTACKS)] = _attacks(study, focus, policy, seed)
    plans[folder(focus, ADAPTIVE)] = _adaptive(study, focus, policy, seed)
    plans[folder(focus, TRAINING)] = _training(study, focus, policy, seed)
    for one in study.transfers:
        plans[folder(one, TRANSFER)] = _transfer(study, one, found_for(one, found), seed)
    if study.other is not None:
        plans[folder(study.other, NETWORKS)] = _networks(study, study.other, seed)
    return plans


def folder(subject: Subject, part: str) -> str:
    """Return the name of one of its audits, which also names a folder."""
    return f"{subject.name}-{part}"


def found_for(subject: Subject, found: Found) -> Policy:
    """Return the hybrid that a subject is trained with: its own, or that of the subject it is transferred from."""
    wanted = subject.source or subject.name
    if wanted not in found:
        raise InvalidValue(
            f"The policies of {wanted} must be searched before audits are planned with them. Call `prepare` first."
        )
    return found[wanted]


def compared(study: Study, seed: int) -> tuple[Policy, ...]:
    """Return the random policies whose score and PSNR are compared (Fig. 2)."""
    return random_policies(study.compared, seed, "compared")


def distinct_functions() -> tuple[int, ...]:
    """Return one index for each function of the library that does something of its own, identities among them.

    Example:
        >>> len(distinct_functions())
        28
    """
    return tuple(sorted({same_as(function.index) for function in LIBRARY}))


def score_of(policy: Policy | None) -> str:
    """Return the label of the probe that scores a policy."""
    return f"score of {NONE if policy is None else policy}"


def attack_on(policy: Policy | None) -> str:
    """Return the label of the attack on one model under a policy."""
    return f"attack on {NONE if policy is None else policy}"


def _policies(study: Study, subject: Subject, found: Policy, seed: int) -> Plan:
    """Train under every policy and every other defence, and attack each model (Tables 1 and 3)."""
    defences = [*as_defences(study, all_policies(study, found, seed)).values(), *BASELINES.values()]
    return _plan(
        f"{_title(subject)}: policies and other defences",
        _scenario(study, subject),
        defences,
        {ATTACK: _attempt(VARIANTS[ATTACK], study.attack)},
        _seeds(seed, study.seeds),
        study.attack.victims,
        stages=(study.attacked,),
    )


def _scores(study: Study, subject: Subject, found: Policy, seed: int) -> Plan:
    """Score policies and functions on one undefended training, and attack its model under each policy (Fig. 2, 5)."""
    attempt = _attempt(VARIANTS[ATTACK], study.compared_attack)
    probes: dict[str, Probe] = {score_of(None): PrivacyScore(samples=study.samples), attack_on(None): attempt}
    for policy in compared(study, seed):
        probes[attack_on(policy)] = Counterfactual(defence=transformed(study, policy), probe=attempt)
    functions = [Policy(branches=((index,),)) for index in distinct_functions()]
    for policy in (*compared(study, seed), *all_policies(study, found, seed).values(), *functions):
        probes[score_of(policy)] = PrivacyScore(policy=policy, samples=study.samples)
    return _plan(
        f"{_title(subject)}: scores, and attacks on one model",
        _scenario(study, subject),
        (),
        probes,
        (seed,),
        study.compared_attack.victims,
        stages=tuple(STAGES.values()),
    )


def _untrained(study: Study, subject: Subject, found: Policy, seed: int) -> Plan:
    """Score what policies may cost in accuracy, on the untrained model."""
    policies = (None, *all_policies(study, found, seed).values())
    probes: dict[str, Probe] = {score_of(one): AccuracyScore(policy=one, samples=study.samples) for one in policies}
    scenario = _scenario(study, subject).model_copy(update={"rounds": 0})
    return _plan(f"{_title(subject)}: accuracy scores", scenario, (), probes, (seed,), 1, stages=("initial",))


def _attacks(study: Study, subject: Subject, found: Policy, seed: int) -> Plan:
    """Attack in six ways with no, a random and the hybrid policy (Table 2), and follow one attack layer by layer (Fig. 6)."""
    probes: dict[str, Probe] = {name: _attempt(VARIANTS[name], study.variants) for name in VARIANTS}
    probes[PATH] = SimilarityPath(attack=_attempt(VARIANTS[ATTACK], study.path).attack, threat=_threat())
    defences = as_defences(study, {**_first_random(study, seed), HYBRID: found})
    return _plan(
        f"{_title(subject)}: six attacks",
        _scenario(study, subject),
        defences.values(),
        probes,
        (seed,),
        study.variants.victims,
        stages=(study.attacked,),
    )


def _adaptive(study: Study, subject: Subject, found: Policy, seed: int) -> Plan:
    """Attack by who knows the policy, beside who does not: one audit, so that both are compared."""
    probes: dict[str, Probe] = {
        ATTACK: _attempt(VARIANTS[ATTACK], study.adaptive),
        KNOWING: _attempt(KNOWING, study.adaptive, Knows.DEFENCE, Knows.AUXILIARY),
    }
    defences = as_defences(study, known_ones(study, found))
    return _plan(
        f"{_title(subject)}: attacks by who knows the policy",
        _scenario(study, subject),
        defences.values(),
        probes,
        (seed,),
        study.adaptive.victims,
        stages=(study.attacked,),
    )


def _training(study: Study, subject: Subject, found: Policy, seed: int) -> Plan:
    """Measure accuracy throughout the training with no, a random and the hybrid policy (Fig. 3)."""
    scenario = _scenario(study, subject).model_copy(update={"moments": study.moments})
    defences = as_defences(study, {**_first_random(study, seed), HYBRID: found})
    return _plan(
        f"{_title(subject)}: accuracy during training",
        scenario,
        defences.values(),
        {CURVE: LearningCurve(examples=2000)},
        (seed,),
        study.moments * study.participants,
        stages=("training",),
        batch_sizes=(study.batch_size,),
    )


def _transfer(study: Study, subject: Subject, found: Policy, seed: int) -> Plan:
    """Train under the policies of another subject (Table 4)."""
    return _plan(
        f"{_title(subject)}: policies of {subject.source}",
        _scenario(study, subject),
        as_defences(study, all_policies(study, found, seed)).values(),
        {ATTACK: _attempt(VARIANTS[ATTACK], study.attack)},
        _seeds(seed, study.few),
        study.attack.victims,
        stages=(study.attacked,),
    )


def _networks(study: Study, subject: Subject, seed: int) -> Plan:
    """Attack an undefended training of another network under the published policies, after one epoch."""
    attempt = _attempt(VARIANTS[ATTACK], study.other_attack)
    probes: dict[str, Probe] = {attack_on(None): attempt}
    for policy in published_parts():
        probes[attack_on(policy)] = Counterfactual(defence=transformed(study, policy), probe=attempt)
    scenario = _scenario(study.model_copy(update={"epochs": 1}), subject)
    title = f"{_title(subject)}: attacks under the published policies"
    return _plan(title, scenario, (), probes, (seed,), study.other_attack.victims, stages=("end",))


def _first_random(study: Study, seed: int) -> dict[str, Policy]:
    return dict(list(random_ones(study, seed).items())[:1])


def _attempt(name: str, strength: Strength, *knows: Knows) -> Attempt:
    """Return an attack whose labels are given, as the paper's are, cut to a strength."""
    whole: Any = preset(name)
    lbfgs = whole.descent.kind == "lbfgs"
    wanted = {
        "iterations": min(whole.iterations, strength.lbfgs if lbfgs else strength.iterations),
        "restarts": min(whole.restarts, strength.restarts),
    }
    return Attempt(attack=preset(name, labels="given", **wanted), threat=_threat(*knows), metrics=(PSNR(), SearchGap()))


def _threat(*knows: Knows) -> ThreatModel:
    return ThreatModel(knows=frozenset({Knows.LOCAL_STEPS, Knows.LABELS, *knows}))


def _scenario(study: Study, subject: Subject) -> Federated:
    rounds = study.rounds_of(subject)
    return Federated(
        data=subject.data,
        model=subject.model,
        participants=study.participants,
        protocol=FedSGD(optimiser=_sgd(study, subject, rounds)),
        rounds=rounds,
        batch_size=study.batch_size,
        device=study.device,
    )


def _sgd(study: Study, subject: Subject, rounds: int) -> Optimiser:
    settings: dict[str, Any] = {"learning_rate": subject.learning_rate, "momentum": MOMENTUM}
    if not study.decayed:
        return Sgd(**settings)
    return DecayedSgd(factor=0.1, rounds=tuple(rounds * eighths // 8 for eighths in (3, 5, 7)), **settings)


def _plan(
    title: str,
    scenario: Federated,
    defences: Iterable[Defence],
    probes: dict[str, Probe],
    seeds: tuple[int, ...],
    victims: int,
    stages: tuple[Stage, ...],
    batch_sizes: tuple[int, ...] = (1,),
) -> Plan:
    return Plan(
        title=title,
        scenarios={"training": scenario},
        defences=tuple(defences),
        probes=probes,
        grid=Grid(seeds=seeds, stages=stages, batch_sizes=batch_sizes, victims=victims),
    )


def _title(subject: Subject) -> str:
    return f"{subject.data_set}, {subject.network}"


def _seeds(seed: int, count: int) -> tuple[int, ...]:
    return tuple(range(seed, seed + count))
