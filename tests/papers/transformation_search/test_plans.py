from __future__ import annotations

import pytest

from leaktight.attacks import GradientMatching
from leaktight.attacks.presets import PRESETS
from leaktight.core.defence import Undefended
from leaktight.core.errors import InvalidValue
from leaktight.core.probe import Attempt
from leaktight.core.threat import Knows
from leaktight.defences import Transformation
from leaktight.learning import DecayedSgd, Federated, FedSGD, Sgd
from leaktight.metrics import PSNR, SearchGap
from leaktight.models import ConvNet
from leaktight.papers import Order
from leaktight.papers.paper import Plans
from leaktight.papers.transformation_search import TransformationSearch
from leaktight.papers.transformation_search.plans import attack_on, compared, distinct_functions, plans_of, score_of
from leaktight.papers.transformation_search.policies import BASELINES
from leaktight.papers.transformation_search.settings import VARIANTS, Study, study_of
from leaktight.probes import AccuracyScore, Counterfactual, LearningCurve, PrivacyScore, SimilarityPath
from leaktight.transforms.policy import Policy

HYBRID = Transformation(policy=Policy.of("3-1+18-15"))


def attack(plans: Plans, part: str, label: str) -> GradientMatching:
    probe = plans[f"cifar10-lenet-{part}"].probes[label]
    assert isinstance(probe, Attempt)
    assert probe.metrics == (PSNR(), SearchGap())
    assert isinstance(probe.attack, GradientMatching)
    assert probe.attack.labels == "given"
    return probe.attack


def test_each_part_has_a_plan_in_a_folder_of_its_own(plans: Plans) -> None:
    parts = ("policies", "scores", "untrained", "attacks", "adaptive", "training")
    assert list(plans) == [*(f"cifar10-lenet-{part}" for part in parts), "f-mnist-lenet-transfer", "cifar10-convnet-networks"]


def test_nothing_is_planned_before_it_is_searched(order: Order) -> None:
    with pytest.raises(InvalidValue, match="policies of cifar10-lenet must be searched before"):
        TransformationSearch().plans(order)


def test_tables_1_and_3_train_under_every_policy_and_defence_with_three_seeds(plans: Plans, study: Study) -> None:
    plan = plans["cifar10-lenet-policies"]
    trained = {cell.defence for cell in plan.cells() if cell.purpose == "measure"}
    assert trained >= {Undefended(), HYBRID, *BASELINES.values()}
    # None, the random ones, the two that were found, three hybrids, seven others.
    assert len(trained) == 1 + study.random + 2 + 3 + 7
    assert (plan.grid.seeds, plan.grid.victims, plan.grid.batch_sizes) == ((5, 6, 7), 20, (1,))


def test_models_are_attacked_while_it_pays_and_at_the_end_at_full_scale(plans: Plans, sets: str) -> None:
    full = plans_of(
        study_of(Order(scale="paper", data=sets)),
        {f"{data}-{network}": Policy.of("3+1") for data in ("cifar100", "f-mnist") for network in ("resnet20", "convnet")},
        0,
    )
    for part in ("policies", "attacks", "adaptive"):
        assert plans[f"cifar10-lenet-{part}"].grid.stages == ("initial",)
        assert full[f"cifar100-resnet20-{part}"].grid.stages == ("end",)
    assert plans["f-mnist-lenet-transfer"].grid.stages == ("initial",)
    assert full["f-mnist-convnet-transfer"].grid.stages == ("end",)


def test_ten_participants_train_by_federated_sgd(plans: Plans, study: Study) -> None:
    for name, plan in plans.items():
        [scenario] = plan.scenarios.values()
        assert isinstance(scenario, Federated)
        assert scenario.participants == 10
        assert scenario.protocol == FedSGD(optimiser=Sgd(learning_rate=0.05, momentum=0.9))
        # A participant has 50 images here, one round for each epoch.
        part = name.rpartition("-")[2]
        assert scenario.rounds == {"untrained": 0, "networks": 1}.get(part, study.epochs)


def test_full_trainings_are_decayed_three_times(sets: str) -> None:
    study = study_of(Order(scale="paper", data=sets)).model_copy(update={"rounds": 80})
    found = {one.name: Policy.of("3+1") for one in study.subjects}
    [scenario] = plans_of(study, found, 0)["cifar100-resnet20-policies"].scenarios.values()
    assert isinstance(scenario, Federated)
    wanted = DecayedSgd(factor=0.1, rounds=(30, 50, 70), learning_rate=0.1, momentum=0.9)
    assert scenario.protocol == FedSGD(optimiser=wanted)


def test_six_attacks_are_the_presets_cut_in_length_alone(plans: Plans, study: Study) -> None:
    for name, source in VARIANTS.items():
        found = attack(plans, "attacks", name)
        whole = PRESETS[source]
        assert isinstance(whole, GradientMatching)
        cut = {"iterations", "restarts", "preset", "labels"}
        assert found.model_dump(exclude=cut) == whole.model_dump(exclude=cut)
        long = study.variants.lbfgs if name.startswith("LBFGS") else study.variants.iterations
        assert (found.iterations, found.restarts) == (long, min(whole.restarts, study.variants.restarts))
    assert {defence for defence in plans["cifar10-lenet-attacks"].defences if isinstance(defence, Transformation)} >= {HYBRID}


def test_one_attack_is_followed_layer_by_layer(plans: Plans, study: Study) -> None:
    probe = plans["cifar10-lenet-attacks"].probes["similarity"]
    assert isinstance(probe, SimilarityPath)
    assert probe.attack.iterations == study.path.iterations
    assert probe.attack.distance == "cosine"


def test_adaptive_attackers_know_the_policy_and_public_images_and_others_do_not(plans: Plans) -> None:
    plan = plans["cifar10-lenet-adaptive"]
    assert list(plan.probes) == ["Adam+Cosine", "ats2021-adaptive"]
    for label, probe in plan.probes.items():
        assert isinstance(probe, Attempt)
        assert (Knows.DEFENCE in probe.threat.knows) is (Knows.AUXILIARY in probe.threat.knows) is label.startswith("ats2021")
    found = attack(plans, "adaptive", "ats2021-adaptive")
    assert (found.distance, found.initial) == ("likelihood", "class_means")
    # Each outcome is a search of its own, and a search in the prior's coordinates needs no more than the preset has.
    assert found.iterations == min(300, attack(plans, "adaptive", "Adam+Cosine").iterations)


def test_random_policies_and_functions_are_scored_on_one_model_at_three_stages(plans: Plans, study: Study) -> None:
    plan = plans["cifar10-lenet-scores"]
    assert plan.grid.stages == ("initial", "early", "end")
    assert all(isinstance(defence, Undefended) for defence in plan.defences)
    for policy in compared(study, 5):
        score, attempt = plan.probes[score_of(policy)], plan.probes[attack_on(policy)]
        assert score == PrivacyScore(policy=policy, samples=study.samples)
        assert isinstance(attempt, Counterfactual)
        assert attempt.defence == Transformation(policy=policy)
    assert all(score_of(Policy.of(str(index))) in plan.probes for index in distinct_functions())
    assert len([label for label in plan.probes if label.startswith("attack on")]) == study.compared + 1


def test_published_policies_are_attacked_on_the_paper_s_second_network(plans: Plans, study: Study) -> None:
    plan = plans["cifar10-convnet-networks"]
    [scenario] = plan.scenarios.values()
    assert isinstance(scenario, Federated)
    assert scenario.model == ConvNet(width=8)
    assert {cell.defence for cell in plan.cells() if cell.purpose == "measure"} == {Undefended()}
    parts = [None, *map(Policy.of, ("3-1-7", "43-18-18", "21-13-3", "7-4-15"))]
    assert list(plan.probes) == [attack_on(policy) for policy in parts]
    assert (plan.grid.stages, plan.grid.victims) == (("end",), study.other_attack.victims)


def test_accuracy_is_scored_on_the_untrained_model_and_measured_throughout_the_training(plans: Plans, study: Study) -> None:
    untrained = plans["cifar10-lenet-untrained"]
    assert untrained.grid.stages == ("initial",)
    assert all(isinstance(probe, AccuracyScore) for probe in untrained.probes.values())
    training = plans["cifar10-lenet-training"]
    assert (training.grid.stages, training.grid.batch_sizes) == (("training",), (study.batch_size,))
    assert [type(probe) for probe in training.probes.values()] == [LearningCurve]


def test_transfer_has_the_policies_that_were_searched_on_the_other_set(plans: Plans) -> None:
    plan = plans["f-mnist-lenet-transfer"]
    assert HYBRID in plan.defences
    assert plan.grid.seeds == (5,)
