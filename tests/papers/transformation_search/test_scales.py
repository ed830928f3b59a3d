from __future__ import annotations

from pathlib import Path

import pytest
import torch

from leaktight.core.errors import InvalidValue
from leaktight.data import Photos
from leaktight.defences import Transformation
from leaktight.models import ConvNet, LeNet, ResNet20
from leaktight.papers import Order
from leaktight.papers.transformation_search import PAPER
from leaktight.papers.transformation_search.audits import make_scenario
from leaktight.papers.transformation_search.scales import PUBLISHED, Study, study_of
from leaktight.transforms.policy import PUBLISHED as PRESETS
from leaktight.transforms.policy import Policy

STRENGTHS = ("attack", "variants", "adaptive", "compared_attack", "path")


def test_smoke_needs_no_files() -> None:
    study = study_of(Order())
    assert study.focus.data == Photos(size=16)
    assert [one.source for one in study.transfers] == [study.focus.name]


@pytest.mark.parametrize("scale", ["small", "paper"])
def test_the_other_scales_need_a_folder_with_both_sets(scale: str, tmp_path: Path, folder: Path) -> None:
    with pytest.raises(InvalidValue, match=f"The scale `{scale}` needs real data sets"):
        study_of(Order.model_validate({"scale": scale}))
    with pytest.raises(InvalidValue, match="There is no folder"):
        study_of(Order.model_validate({"scale": scale, "data": str(tmp_path / "nowhere")}))
    (folder / "fashion-mnist").unlink()
    with pytest.raises(InvalidValue, match="must have a sub-folder `fashion-mnist`"):
        study_of(Order.model_validate({"scale": scale, "data": str(folder)}))
    for name in ("cifar10", "cifar100"):
        (folder / name).unlink()
    with pytest.raises(InvalidValue, match="must have a sub-folder `cifar10"):
        study_of(Order.model_validate({"scale": scale, "data": str(folder)}))


def test_small_has_three_seeds_and_at_least_forty_policies(study: Study) -> None:
    assert [(one.data_set, one.network, one.model) for one in study.subjects] == [("CIFAR10", "LeNet", LeNet())]
    assert [(one.data_set, one.source) for one in study.transfers] == [("F-MNIST", "cifar10-lenet")]
    assert (study.seeds, study.participants) == (3, 10)
    assert study.compared >= 40
    assert study.random >= 2
    assert study.published == PUBLISHED


def test_an_epoch_is_a_pass_over_equal_shares(study: Study) -> None:
    # 500 images are 50 for each of ten participants, so that there is one batch of 32 in an epoch.
    assert study.rounds_of(study.focus) == study.epochs
    assert study.model_copy(update={"batch_size": 10}).rounds_of(study.focus) == 5 * study.epochs
    assert study.model_copy(update={"rounds": 7}).rounds_of(study.focus) == 7


def test_the_full_experiment_has_the_settings_of_section_5(sets: str) -> None:
    study = study_of(Order(scale="paper", data=sets))
    assert [(one.data_set, one.network) for one in study.subjects] == [
        (data_set, network) for data_set in ("CIFAR100", "F-MNIST") for network in ("ResNet20", "ConvNet")
    ]
    assert {type(one.model) for one in study.subjects} == {ResNet20, ConvNet}
    assert study.subjects[0].model == ResNet20(width=4, norm="running")
    assert study.subjects[1].model == ConvNet(width=64, norm="running")
    assert study.transfers[0].data.load().shape == (1, 32, 32)
    assert (study.epochs, study.participants, study.random, study.compared) == (200, 10, 10, 300)
    assert study.weight_decay == 5e-4
    assert (study.search.candidates, study.search.images, study.search.epochs, study.search.method) == (
        1500,
        100,
        50,
        "random",
    )
    assert (study.attack.iterations, study.compared_attack.iterations, study.attack.victims) == (4800, 2500, 100)
    assert (study.decayed, study.crop_flip) == (True, True)
    assert study.focus.name == "cifar100-resnet20"
    assert [(one.name, one.source) for one in study.transfers] == [
        ("f-mnist-resnet20", "cifar100-resnet20"),
        ("f-mnist-convnet", "cifar100-convnet"),
    ]


def test_the_published_hybrids_are_those_of_cifar100() -> None:
    assert [str(PRESETS[f"ats2021-{network}-cifar100"]) for network in ("resnet20", "convnet")] == list(PUBLISHED)


def test_the_full_network_takes_a_step_with_running_statistics(sets: str) -> None:
    study = study_of(Order(scale="paper", data=sets, steps=1)).model_copy(update={"participants": 2})
    scenario = make_scenario(study, study.focus)
    data = scenario.data.load()
    before = scenario.task(data, 0)
    training = scenario.train(Transformation(policy=Policy.of("3-1-7"), crop_flip=True), 0)
    after = training.snapshots["end"].parameters
    running = before.public_running()
    # A convolution before the blocks and two in each of nine, each with its mean and variance.
    assert len(running) == 2 * 19
    assert all(not torch.equal(after[name], tensor) for name, tensor in running.items())
    moved = [name for name, tensor in before.public_state().items() if not torch.equal(after[name], tensor)]
    assert "head.weight" in moved
    assert "body.conv1.weight" in moved


@pytest.mark.parametrize("scale", ["smoke", "small", "paper"])
def test_steps_keep_every_part_and_cut_what_is_counted(scale: str, sets: str) -> None:
    whole, cut = (study_of(Order.model_validate({"scale": scale, "data": sets, "steps": steps})) for steps in (None, 1))
    for name in ("explained", "participants", "decayed", "crop_flip", "published", "epsilon", "delta", "gamma"):
        assert getattr(cut, name) == getattr(whole, name)
    for name in ("subjects", "transfers"):
        assert [(one.name, one.model, one.source) for one in getattr(cut, name)] == [
            (one.name, one.model, one.source) for one in getattr(whole, name)
        ]
    for name in STRENGTHS:
        found = getattr(cut, name)
        assert (found.victims, found.iterations, found.lbfgs, found.restarts) == (2, 1, 1, 1)
    assert (cut.rounds, cut.seeds, cut.few, cut.random, cut.compared, cut.moments) == (1, 1, 1, 1, 9, 1)
    assert (cut.search.candidates, cut.search.images, cut.search.epochs) == (4, 8, 1)


def test_files_are_cut_and_what_is_told_is_what_was_done(sets: str) -> None:
    order = Order(scale="small", data=sets, steps=3)
    data = study_of(order).focus.data.load()
    assert (len(data.train), len(data.test)) == (200, 50)
    [told, *_] = PAPER.remarks(order, PAPER.setup(order))
    assert told.startswith("Cut by --steps 3: 4 candidates, 3 rounds, attacks on 2 images by at most 3 iterations")
    assert "200 training and 50 test images" in told
    assert "200 training" not in PAPER.cut(Order(steps=3))
