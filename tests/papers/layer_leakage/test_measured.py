from __future__ import annotations

from collections.abc import Callable

import pytest

from leaktight.core.metric import Reading
from leaktight.core.record import Cell
from leaktight.papers.layer_leakage.measured import Measured, told
from leaktight.papers.layer_leakage.settings import Study
from leaktight.papers.paper import Records


@pytest.fixture
def measured(study: Study, answered: Callable[..., Records]) -> Measured:
    return Measured(study, answered())


def test_readings_are_found_by_subject_network_probe_layer_and_seed(measured: Measured, study: Study) -> None:
    gender, glasses = study.subjects
    found = measured.readings(gender, "leak", "AlexNet", "random forest", "property_auc", "body.conv3")
    # One step from the first fully connected layer; seeds are 5, 6 and 7.
    assert {seed: one.value for seed, one in found.items()} == {seed: pytest.approx(0.86 + seed / 1000) for seed in (5, 6, 7)}
    deep = measured.readings(glasses, "leak", "VGG11Net", "random forest", "property_auc", "body.conv3")
    assert deep[5].value == pytest.approx(0.5 + 0.4 * 0.4 + 0.005)
    assert measured.readings(gender, "leak", "AlexNet", "random forest", "property_auc", "body.conv4") == {}
    assert measured.readings(gender, "leak", "AlexNet", "network", "property_auc", "body.conv3") == {}
    assert measured.readings(study.tasks[0], "leak", "AlexNet", "random forest", "property_auc", "body.conv3") == {}


def test_accuracies_are_those_of_the_training(measured: Measured, study: Study) -> None:
    found = measured.accuracy(study.tasks[0], "model", "VGG11Net", "sensitivity")
    assert {seed: one.value for seed, one in found.items()} == {5: pytest.approx(0.805)}


def test_null_views_are_not_counted(study: Study, answered: Callable[..., Records]) -> None:
    records = {name: [record for record in found if record.cell.purpose == "null"] for name, found in answered().items()}
    assert any(records.values())
    measured = Measured(study, records)
    assert measured.readings(study.subjects[0], "leak", "AlexNet", "random forest", "property_auc", "head") == {}


def test_a_seed_that_failed_is_left_out(study: Study, answered: Callable[..., Records]) -> None:
    def fails(cell: Cell) -> bool:
        return cell.seed == 6

    measured = Measured(study, answered(fails))
    found = measured.readings(study.subjects[0], "leak", "FCNet", "random forest", "property_auc", "head")
    assert list(found) == [5, 7]


def test_one_training_has_its_reading_s_own_interval_and_several_have_that_over_them() -> None:
    one = Reading(name="property_auc", value=0.7, low=0.5, high=0.9)
    assert told("auc", {0: one}) == {"auc": 0.7, "auc_low": 0.5, "auc_high": 0.9}
    row = told("auc", {0: one, 1: Reading(name="property_auc", value=0.72, low=0.6, high=0.8)})
    # Student's t with one degree of freedom is 12.706; the deviation is 0.0141.
    assert row["auc"] == pytest.approx(0.71)
    assert row["auc_high"] == pytest.approx(0.71 + 12.706 * 0.01, rel=1e-3)
    assert told("auc", {}) == {"auc": None, "auc_low": None, "auc_high": None}
