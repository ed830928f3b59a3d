"""Layer studies: which audits they take, and that these run."""

import pytest
from pydantic import ValidationError

from leaktight.attacks.matching import GradientMatching
from leaktight.attacks.property_inference import PropertyInference
from leaktight.core.errors import InvalidValue
from leaktight.core.record import Status
from leaktight.data import ClassProperty, Digits, Parity
from leaktight.findings.layer_risk import layer_rows, rankings
from leaktight.learning import ByProperty, Federated
from leaktight.models import MLP
from leaktight.plans.layer_study import LayerStudy
from leaktight.running import run

STUDY = LayerStudy(
    data=Parity(), model=MLP(hidden=(12, 8)), rounds=10, moments=2, messages=12, gradients=40, repeats=2, victims=2
)


def test_property_and_labels_are_asked_for_in_the_same_way():
    plan = STUDY.plans()["inference"]
    asked, labels = plan.scenarios["private property"], plan.scenarios["commonest class"]
    assert isinstance(asked, Federated)
    assert isinstance(labels, Federated)
    assert labels.data == ClassProperty(data=Parity())
    assert labels.model_copy(update={"data": asked.data}) == asked
    assert (asked.schedule, asked.moments) == (ByProperty(), 2)
    assert (plan.grid.stages, plan.grid.batch_sizes, plan.grid.victims) == (("training",), (32,), 12)
    attempt = plan.probes["property_inference"]
    assert attempt.attack == PropertyInference(layers="each", gradients=40)
    attempt.attack.check(attempt.threat.knows)


def test_each_layer_is_inverted_by_itself():
    plan = STUDY.plans()["reconstruction"]
    assert tuple(plan.probes) == STUDY.layers() == ("body.linear1", "body.linear2", "head")
    for layer, probe in plan.probes.items():
        assert isinstance(probe.attack, GradientMatching)
        assert probe.attack.layers == (layer,)
    assert plan.grid.batch_sizes == (1,)


def test_without_a_property_there_are_labels_and_without_victims_no_inversion():
    study = STUDY.model_copy(update={"data": Digits(), "victims": 0})
    assert list(study.plans()) == ["inference"]
    assert list(study.plans()["inference"].scenarios) == ["commonest class"]


@pytest.mark.parametrize(("name", "value"), [("rounds", 0), ("messages", 4), ("gradients", 3), ("victims", -1)])
def test_absurd_settings_are_refused(name, value):
    with pytest.raises((InvalidValue, ValidationError), match=name):
        LayerStudy(data=Parity(), model=MLP(), **{name: value})


@pytest.mark.long
def test_the_audits_run_and_every_layer_gets_its_numbers(tmp_path):
    study = STUDY.model_copy(update={"iterations": 5})
    records = [record for name, plan in study.plans().items() for record in run(plan, tmp_path / name)]
    assert {record.status for record in records} == {Status.DONE}
    rows = layer_rows(records)
    assert tuple(row.layer for row in rows) == study.layers()
    for row in rows:
        for name in ("property_auc", "v_information", "label_auc", "sensitivity_f", "mutual_information_upper", "psnr"):
            assert name in row.readings
    assert set(rankings(rows)) == {"property", "labels", "reconstruction"}
