from __future__ import annotations

from collections.abc import Callable

import pytest

from leaktight.core.defence import Undefended
from leaktight.core.errors import InvalidValue
from leaktight.defences import Transformation
from leaktight.learning import DecayedSgd, Federated, FedSGD, Sgd
from leaktight.papers import Order, Records
from leaktight.papers.paper import Plans
from leaktight.papers.transformation_search import PAPER
from leaktight.papers.transformation_search.audits import _by_seed, attack_columns, learning_columns
from leaktight.papers.transformation_search.policies import cells
from leaktight.papers.transformation_search.scales import Study, study_of
from leaktight.transforms.policy import Policy

HYBRID, FIRST = (Transformation(policy=Policy.of(text)) for text in ("3-1+18-15", "3-1"))


def test_models_are_looked_up_when_the_study_attacks_them(study: Study, answered: Callable[..., Records]) -> None:
    readings = cells(study, study.focus, answered()).where(defence=HYBRID).done.readings("psnr", "used")
    # 14 dB without a defence, 6 less with the hybrid, a tenth more with each seed.
    assert [reading.value for reading in readings.values()] == pytest.approx([8.5, 8.6, 8.7])
    with pytest.raises(InvalidValue, match="was planned with label=Adam\\+Cosine, stage=end"):
        cells(study.model_copy(update={"attacked": "end"}), study.focus, answered())


def test_drops_compare_trainings_of_the_same_seed(study: Study, answered: Callable[..., Records]) -> None:
    attacked = cells(study, study.focus, answered())
    row = attack_columns(study, attacked, [HYBRID])
    assert row["psnr"] == pytest.approx(8.6)
    assert row["psnr_original"] == pytest.approx(7.6)
    assert row["chance"] == pytest.approx(11.5)
    assert row["psnr_above_chance"] == pytest.approx(8.6 - 11.5)
    assert row["psnr_above_chance_original"] == pytest.approx(7.6 - 11.5)
    assert row["above_chance_drop"] == pytest.approx(6.0)
    # The same in each of three seeds, so that nothing is left to doubt, whatever differs between seeds.
    assert [row[f"psnr_drop{end}"] for end in ("", "_low", "_high")] == pytest.approx([6.0, 6.0, 6.0])
    learned = learning_columns(study, attacked, [HYBRID, FIRST])
    assert learned["accuracy_change"] == pytest.approx(0.0065)
    assert learned["trainings"] == 6


def test_of_one_training_the_drop_is_over_its_images(study: Study, answered: Callable[..., Records]) -> None:
    attacked = answered().where("f-mnist-lenet-transfer", label="Adam+Cosine", seed=5)
    row = attack_columns(study, attacked, [HYBRID])
    assert [row[f"psnr_drop{end}"] for end in ("", "_low", "_high")] == pytest.approx([6.0, 6.0, 6.0])
    assert [row[f"psnr{end}"] for end in ("", "_low", "_high")] == pytest.approx([8.5, 8.3, 8.7])
    learned = learning_columns(study, attacked, [HYBRID])
    assert learned["accuracy_change"] == pytest.approx(0.006)
    assert learned["accuracy_change_low"] < 0 < learned["accuracy_change_high"]  # type: ignore[operator]


def test_what_failed_is_left_out(study: Study, answered: Callable[..., Records]) -> None:
    attacked = cells(study, study.focus, answered(lambda cell: cell.seed == 6 and cell.defence == Undefended()))
    assert list(attacked.where(defence=Undefended()).done.readings("psnr", "used")) == [5, 7]
    assert attack_columns(study, attacked, [HYBRID])["psnr_drop"] == pytest.approx(6.0)
    nothing = cells(study, study.focus, answered(lambda cell: True))
    row = {**attack_columns(study, nothing, [HYBRID]), **learning_columns(study, nothing, [HYBRID])}
    assert {value for name, value in row.items() if name != "trainings"} == {None}
    assert row["trainings"] == 0


def test_policies_that_share_a_training_count_once_for_it() -> None:
    assert _by_seed([(0, 1.0), (1, 3.0), (0, 2.0), (1, 5.0)]) == [1.5, 4.0]
    assert _by_seed([(0, 1.0), (0, 2.0)]) == [1.0, 2.0]


def test_models_are_attacked_while_it_pays_and_at_the_end_at_full_scale(plans: Plans, sets: str) -> None:
    full = PAPER.plans(
        study_of(Order(scale="paper", data=sets)).model_copy(
            update={
                "hybrids": {
                    f"{data}-{network}": Policy.of("3+1")
                    for data in ("cifar100", "f-mnist")
                    for network in ("resnet20", "convnet")
                }
            }
        )
    )
    for part in ("policies", "attacks"):
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
        wanted = {"untrained": 0, "scores": 0, "networks": 1, "0": 0, "10": 10, "50": 50}.get(part, study.epochs)
        assert scenario.rounds == wanted


def test_full_trainings_are_decayed_three_times(sets: str) -> None:
    study = study_of(Order(scale="paper", data=sets)).model_copy(update={"rounds": 80})
    found = {one.name: Policy.of("3+1") for one in study.subjects}
    [scenario] = PAPER.plans(study.model_copy(update={"hybrids": found}))[
        "cifar100-resnet20-policies"
    ].scenarios.values()
    assert isinstance(scenario, Federated)
    wanted = DecayedSgd(factor=0.1, rounds=(30, 50, 70), learning_rate=0.1, momentum=0.9, weight_decay=5e-4)
    assert scenario.protocol == FedSGD(optimiser=wanted)
