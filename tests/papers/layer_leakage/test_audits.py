from __future__ import annotations

from collections.abc import Callable

import pytest

from leaktight.attacks.property_inference import PropertyInference
from leaktight.core.errors import InvalidValue
from leaktight.core.probe import Attempt
from leaktight.core.threat import Knows
from leaktight.learning import Federated, FedSGD, Sgd
from leaktight.learning.schedule import ByProperty
from leaktight.papers import Check, Order, Records, Tables
from leaktight.papers.layer_leakage import PAPER
from leaktight.papers.layer_leakage.audits import accuracy_columns, measured_columns
from leaktight.papers.layer_leakage.scales import Study, study_of
from leaktight.papers.paper import Plans
from leaktight.papers.row import rows_where
from leaktight.probes import MutualInformation, RemainingLeak, Sensitivity, VInformation


@pytest.mark.parametrize(
    ("table", "column", "words", "where"),
    [
        ("layers", "v_information", "V-information", {"task": "gender", "network": "VGG11Net"}),
        ("layers", "property_auc", "Property AUC", {"task": "gender", "network": "VGG11Net"}),
        ("mixed", "v_information", "V-information of mixed batches", {"task": "gender", "network": "VGG11Net"}),
        ("properties", "property_auc", "Property AUC in Fig. 7", {"property": "hair: black"}),
        ("tasks", "share", "Share of sensitivity", {"task": "race", "network": "VGG11Net"}),
    ],
)
def test_the_best_layer_must_be_near_the_first_linear_one(
    tables: Tables, table: str, column: str, words: str, where: dict[str, str], find_check: Callable[..., Check]
) -> None:
    ends = {
        "layers": "LFW, gender, race: Black, VGG11Net",
        "mixed": "LFW, gender, race: Black, VGG11Net",
        "properties": "LFW, glasses, hair: black, VGG11Net",
        "tasks": "LFW, race, VGG11Net",
    }
    check = find_check(f"{words}(best layer at or next to the first linear one)", ends[table])
    # Two steps away from it everything was answered with less; layers 8, 9 and 10 are near.
    assert check.value == pytest.approx({"layers": 0.08, "mixed": 0.08, "properties": 0.08, "tasks": 0.02}[table])
    assert check.holds
    for row in rows_where(tables[table], layer=7, **where):
        row[column] = 2.0
    assert not find_check(f"{words}(best layer at or next to the first linear one)", ends[table]).holds
    for row in rows_where(tables[table], layer=8, **where):
        row[column] = 3.0
    assert find_check(f"{words}(best layer at or next to the first linear one)", ends[table]).holds


def test_a_place_carries_the_interval_of_its_difference(tables: Tables, find_check: Callable[..., Check]) -> None:
    for row in tables["layers"]:
        row |= {"v_information": 0.1, "v_information_low": 0.06, "v_information_high": 0.14}
    for row in rows_where(tables["layers"], layer=4):
        row |= {"v_information": 0.15, "v_information_low": 0.12, "v_information_high": 0.18}
    check = find_check("V-information(best", "LFW, gender, race: Black, AlexNet")
    assert (check.value, check.low, check.high) == pytest.approx((0.05, 0.0, 0.1))
    assert (check.holds, check.undecided) == (True, True)


def test_columns_are_found_by_subject_network_probe_and_layer(study: Study, answered: Callable[..., Records]) -> None:
    gender, glasses = study.subjects
    records = answered()
    row = measured_columns("auc", records, gender, "leak", "AlexNet", "random forest", "property_auc", "body.conv3")
    # One step from the first fully connected layer; the mean of seeds 5, 6 and 7.
    assert row["auc"] == pytest.approx(0.866)
    deep = measured_columns("auc", records, glasses, "leak", "VGG11Net", "random forest", "property_auc", "body.conv3")
    assert deep["auc"] == pytest.approx(0.5 + 0.4 * 0.4 + 0.006)


@pytest.mark.parametrize(
    ("part", "probe", "layer", "sentence"),
    [
        ("leak", "random forest", "body.conv4", "has no reading `property_auc` of layer `body.conv4`"),
        ("leak", "network", "body.conv3", "No cell of `lfw-gender-race-black-leak` was planned with label=network"),
        ("nothing", "random forest", "body.conv3", "There is no audit named `lfw-gender-race-black-nothing`"),
    ],
)
def test_what_was_not_measured_cannot_be_asked_for(
    study: Study, answered: Callable[..., Records], part: str, probe: str, layer: str, sentence: str
) -> None:
    with pytest.raises(InvalidValue, match=sentence):
        measured_columns("auc", answered(), study.subjects[0], part, "AlexNet", probe, "property_auc", layer)


def test_accuracies_are_those_of_the_training(study: Study, answered: Callable[..., Records]) -> None:
    row = accuracy_columns(answered(), study.tasks[0], "model", "VGG11Net", "sensitivity")
    assert row["accuracy"] == pytest.approx(0.805)


def test_a_seed_that_failed_is_left_out(study: Study, answered: Callable[..., Records]) -> None:
    records = answered(lambda cell: cell.seed == 6)
    row = measured_columns("auc", records, study.subjects[0], "leak", "FCNet", "random forest", "property_auc", "head")
    # Student's t with one degree of freedom is 12.706; seeds 5 and 7 are two thousandths apart.
    assert row["auc"] == pytest.approx(0.5 + 0.4 * 0.2 + 0.006)
    assert row["auc_high"] == pytest.approx(0.586 + 12.706 * 0.001, rel=1e-3)


def test_two_participants_train_by_federated_sgd_and_every_second_batch_has_the_property(plans: Plans) -> None:
    scenarios = plans["lfw-gender-race-black-leak"].scenarios
    assert list(scenarios) == ["AlexNet", "VGG11Net", "FCNet"]
    for scenario in scenarios.values():
        assert isinstance(scenario, Federated)
        assert scenario.participants == 2
        assert scenario.protocol == FedSGD(optimiser=Sgd(learning_rate=0.01))
        assert scenario.schedule == ByProperty(every=2, share=1.0)
        assert (scenario.rounds, scenario.batch_size, scenario.moments) == (144, 32, 8)


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
    plans = PAPER.plans(study_of(Order(scale="paper", data=sets)))
    for name in ("leak", "mixed", "compared"):
        for probe in plans[f"lfw-gender-race-black-{name}"].probes.values():
            assert isinstance(probe, Attempt | RemainingLeak | VInformation)
            assert probe.threat.seat == "client-1"
            assert probe.threat.knows == {Knows.AUXILIARY, Knows.LOCAL_STEPS}


def test_the_model_is_measured_at_its_end(plans: Plans) -> None:
    plan = plans["lfw-gender-race-black-model"]
    assert plan.probes == {"sensitivity": Sensitivity(samples=32), "mutual information": MutualInformation(samples=400)}
    assert (plan.grid.stages, plan.grid.victims) == (("end",), 1)
