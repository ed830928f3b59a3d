from __future__ import annotations

from collections.abc import Callable

import pytest

from leaktight.attacks.property_inference import PropertyInference
from leaktight.core.errors import InvalidValue
from leaktight.core.probe import Attempt
from leaktight.core.record import Record
from leaktight.core.threat import Knows
from leaktight.learning import Federated, FedSGD, Sgd
from leaktight.learning.schedule import ByProperty
from leaktight.papers import Check, Order, Records, Tables
from leaktight.papers.layer_leakage import PAPER
from leaktight.papers.layer_leakage.audits import accuracy_columns, leak_leads, measured_columns
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
    [row] = rows_where(tables[table], layer=9, **where)
    row |= {f"{column}_lead": -0.05, f"{column}_lead_low": -0.1, f"{column}_lead_high": 0.0}
    check = find_check(f"{words}(best layer at or next to the first linear one)", ends[table])
    assert (check.value, check.low, check.high, check.word) == (-0.05, -0.1, 0.0, "does not hold")


def test_layers_are_compared_run_by_run(study: Study, answered: Callable[..., Records]) -> None:
    def change(record: Record) -> Record:
        # One layer two steps away is ahead, by 0.01 and a thousandth more with each seed; runs differ by much more.
        seed, readings = record.cell.seed, []
        for reading in record.readings:
            ahead = 0.01 + (seed - 5) / 1000 if reading.layer == "body.conv2" else 0.0
            value = 0.5 + (seed - 5) / 10 + ahead
            readings.append(reading.model_copy(update={"value": value, "low": None, "high": None}))
        return record.model_copy(update={"readings": tuple(readings)})

    gender = study.subjects[0]
    records = Records({"lfw-gender-race-black-leak": map(change, answered().where("lfw-gender-race-black-leak"))})
    row = leak_leads(records, gender, "AlexNet", "body.linear1")
    half = 4.3027 * 0.001 / 3**0.5
    assert [row[f"property_auc_lead{end}"] for end in ("", "_low", "_high")] == pytest.approx(
        [-0.011, -0.011 - half, -0.011 + half], abs=1e-6
    )
    assert leak_leads(records, gender, "AlexNet", "body.conv2")["property_auc_lead"] is None
    assert leak_leads(records, gender, "FCNet", "body.linear1")["property_auc_lead"] is None


def test_of_one_run_the_intervals_of_both_layers_count(study: Study, answered: Callable[..., Records]) -> None:
    records = answered(lambda cell: cell.seed != 6)
    row = leak_leads(records, study.subjects[0], "AlexNet", "body.linear1")
    # Both were answered with 0.2 on each side.
    found = [row[f"property_auc_lead{end}"] for end in ("", "_low", "_high")]
    assert found == pytest.approx([0.08, 0.08 - 0.2 * 2**0.5, 0.08 + 0.2 * 2**0.5])


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
    assert row["accuracy"] == pytest.approx(0.806)


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
