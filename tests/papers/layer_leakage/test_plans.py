from __future__ import annotations

import pytest

from leaktight.attacks import GradientMatching
from leaktight.attacks.property_inference import PropertyInference
from leaktight.core.probe import Attempt
from leaktight.core.threat import Knows
from leaktight.learning import Federated, FedSGD, Sgd
from leaktight.learning.schedule import ByProperty
from leaktight.models import DeepDLNet, FaceAlexNet, VGG11Net
from leaktight.papers import Order
from leaktight.papers.layer_leakage import LayerLeakage
from leaktight.papers.layer_leakage.plans import convolutional, folder, plans_of, span
from leaktight.papers.layer_leakage.settings import Study, study_of
from leaktight.papers.paper import Plans
from leaktight.probes import MutualInformation, Sensitivity, VInformation


def test_each_part_has_a_plan_in_a_folder_of_its_own(plans: Plans) -> None:
    assert list(plans) == [
        *(f"lfw-gender-race-black-{part}" for part in ("leak", "model", "mixed", "compared")),
        *(f"lfw-glasses-gender-male-{part}" for part in ("leak", "model", "mixed", "compared")),
        "lfw-glasses-age-senior-leak",
        "lfw-glasses-hair-black-leak",
        *(f"lfw-{task}-gender-male-model" for task in ("race", "hair", "age")),
        "inversion",
    ]
    assert all(name == name.lower() and " " not in name and ":" not in name for name in plans)


def test_what_is_repeated_by_seed(plans: Plans, study: Study) -> None:
    for name, plan in plans.items():
        often = any(name.startswith(folder(subject, "")) for subject in study.subjects)
        assert plan.grid.seeds == ((5, 6, 7) if often else (5,))


def test_two_participants_train_by_federated_sgd_and_every_second_batch_has_the_property(plans: Plans) -> None:
    scenarios = plans["lfw-gender-race-black-leak"].scenarios
    assert list(scenarios) == ["AlexNet", "VGG11Net", "FCNet"]
    for scenario in scenarios.values():
        assert isinstance(scenario, Federated)
        assert scenario.participants == 2
        assert scenario.protocol == FedSGD(optimiser=Sgd(learning_rate=0.01))
        assert scenario.schedule == ByProperty(every=2, share=1.0)
        assert (scenario.rounds, scenario.batch_size, scenario.moments) == (144, 32, 8)


def test_mixed_batches_differ_in_nothing_else(plans: Plans) -> None:
    pure, mixed = plans["lfw-gender-race-black-leak"], plans["lfw-gender-race-black-mixed"]
    assert (mixed.probes, mixed.grid) == (pure.probes, pure.grid)
    assert list(mixed.scenarios) == ["AlexNet", "VGG11Net"]
    for name, scenario in mixed.scenarios.items():
        assert scenario == pure.scenarios[name].model_copy(update={"schedule": ByProperty(every=2, share=0.5)})


def test_layers_are_attacked_throughout_the_training(plans: Plans) -> None:
    plan = plans["lfw-glasses-gender-male-leak"]
    assert (plan.grid.stages, plan.grid.batch_sizes, plan.grid.victims) == (("training",), (32,), 64)
    attack, information = plan.probes["random forest"], plan.probes["V-information"]
    assert isinstance(attack, Attempt)
    assert attack.attack == PropertyInference(classifier="random_forest", layers="each", gradients=128)
    assert isinstance(information, VInformation)
    assert (information.families, information.repeats, information.gradients) == (("random_forest",), 2, 128)
    assert attack.threat == information.threat
    assert attack.threat.seat == "server"
    assert Knows.AUXILIARY in attack.threat.knows


def test_the_paper_s_attacker_is_a_participant(sets: str) -> None:
    plans = plans_of(study_of(Order(scale="paper", data=sets)), 0)
    for name in ("leak", "mixed", "compared"):
        for probe in plans[f"lfw-gender-race-black-{name}"].probes.values():
            assert isinstance(probe, Attempt | VInformation)
            assert probe.threat.seat == "client-1"
            assert probe.threat.knows == {Knows.AUXILIARY, Knows.LOCAL_STEPS}


def test_other_attackers_differ_in_one_thing_each(plans: Plans) -> None:
    plan = plans["lfw-gender-race-black-compared"]
    assert list(plan.scenarios) == ["AlexNet"]
    network, entries = (plan.probes[name] for name in ("network", "random entries"))
    assert isinstance(network, Attempt)
    assert isinstance(entries, Attempt)
    assert network.attack == PropertyInference(classifier="network", layers="each", gradients=128)
    assert entries.attack == PropertyInference(layers="each", gradients=128, entries=48)
    information = plan.probes["V-information, network"]
    assert isinstance(information, VInformation)
    assert (information.families, information.entries) == (("network",), None)
    assert plan.probes["V-information, random entries"] == information.model_copy(
        update={"families": ("random_forest",), "entries": 48}
    )


def test_the_model_is_measured_at_its_end(plans: Plans) -> None:
    plan = plans["lfw-gender-race-black-model"]
    assert plan.probes == {"sensitivity": Sensitivity(samples=32), "mutual information": MutualInformation(samples=400)}
    assert (plan.grid.stages, plan.grid.victims) == (("end",), 1)


def test_other_properties_have_one_network_and_other_tasks_those_with_convolutions(plans: Plans, study: Study) -> None:
    assert list(plans["lfw-glasses-age-senior-leak"].scenarios) == ["VGG11Net"]
    assert [getattr(one, "model", None) for one in plans["lfw-age-gender-male-model"].scenarios.values()] == [
        FaceAlexNet(),
        VGG11Net(),
    ]
    assert convolutional(study) == ("AlexNet", "VGG11Net")


def test_inversion_matches_some_layers_of_one_gradient(plans: Plans, study: Study) -> None:
    plan = plans["inversion"]
    [scenario] = plan.scenarios.values()
    assert isinstance(scenario, Federated)
    assert (scenario.rounds, scenario.normalise, scenario.model) == (0, False, DeepDLNet())
    assert (plan.grid.batch_sizes, plan.grid.victims, plan.grid.stages) == ((1,), 6, ("initial",))
    assert len(plan.probes) == len(study.inversion.sets) == 13
    probe = plan.probes["layers 2-4"]
    assert isinstance(probe, Attempt)
    assert isinstance(probe.attack, GradientMatching)
    assert probe.attack.layers == ("body.conv2", "body.conv3", "body.conv4")
    assert (probe.attack.distance, probe.attack.labels, probe.attack.iterations) == ("l2", "read", 20)
    last = plan.probes["layers 8"]
    assert isinstance(last, Attempt)
    assert isinstance(last.attack, GradientMatching)
    assert last.attack.layers == ("head",)


@pytest.mark.parametrize(("numbers", "name"), [((8,), "8"), ((1, 2), "1-2"), ((2, 3, 4, 5, 6, 7, 8), "2-8")])
def test_sets_of_layers_have_short_names(numbers: tuple[int, ...], name: str) -> None:
    assert span(numbers) == name


def test_no_two_plans_share_a_folder_at_any_scale(sets: str) -> None:
    for scale in ("smoke", "small", "paper"):
        order = Order.model_validate({"scale": scale, "data": sets})
        study = study_of(order)
        wanted = len(study.subjects) * 4 + len(study.properties) + len(study.tasks) + 1
        assert len(LayerLeakage().plans(order)) == wanted
