from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from leaktight.core.errors import InvalidValue
from leaktight.data import Npz
from leaktight.models.alexnet import AlexNet
from leaktight.models.vgg16 import VGG16
from leaktight.papers import Order
from leaktight.papers.polarization_network import PAPER
from leaktight.papers.polarization_network.scales import ALPHA2, NOISE, PARTICIPANTS, missing_sets, studies


@pytest.fixture
def sets(tmp_path: Path) -> str:
    """Return a folder with two sets of 32x32 images, large enough for a hundred clients."""
    images, labels = np.zeros((640, 32, 32, 3), np.uint8), np.arange(640) % 10
    for name in ("cifar10", "mnist"):
        (tmp_path / name).mkdir()
        np.savez(tmp_path / name / "set.npz", x_train=images, y_train=labels, x_test=images[:60], y_test=labels[:60])
    return str(tmp_path)


def test_what_steps_cut_is_told_as_it_is() -> None:
    [cut, *_] = PAPER.remarks(Order(steps=3), PAPER.setup(Order(steps=3)))
    assert cut.startswith("Cut by --steps 3: at most 3 rounds, local steps and attack iterations, 2 victims")
    assert cut.endswith("The numbers show that every part runs, and nothing else.")
    # The bundled digits are not cut.
    assert "1000" not in cut
    assert "1000 training and 50 test images" in PAPER.cut(Order(scale="paper", data="sets", steps=3))
    [study] = studies(Order(steps=3))
    assert {sweep.victims for sweep in study.sweeps} == {2}


def test_without_steps_nothing_is_said_to_be_cut() -> None:
    assert not any("Cut" in remark for remark in PAPER.remarks(Order(), PAPER.setup(Order())))


def test_smoke_needs_no_files() -> None:
    assert [study.name for study in studies(Order())] == ["digits"]


@pytest.mark.parametrize("scale", ["small", "paper"])
def test_the_other_scales_need_a_folder_with_sets(scale: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidValue, match=f"The scale `{scale}` needs real data sets"):
        studies(Order.model_validate({"scale": scale}))
    with pytest.raises(InvalidValue, match="There is no folder"):
        studies(Order.model_validate({"scale": scale, "data": str(tmp_path / "nowhere")}))
    with pytest.raises(InvalidValue, match="must have a sub-folder `cifar10`"):
        studies(Order.model_validate({"scale": scale, "data": str(tmp_path)}))


def test_small_has_both_sets_and_searches_all_batches_alike(sets: str) -> None:
    cifar10, mnist = studies(Order(scale="small", data=sets))
    assert (cifar10.name, mnist.name) == ("CIFAR10", "MNIST")
    assert {sweep.iterations for study in (cifar10, mnist) for sweep in study.sweeps} == {35}
    first = cifar10.sweeps[0]
    assert (first.batch_sizes, first.noise, first.alpha2) == ((1,), cifar10.noise, cifar10.alpha2)
    assert isinstance(cifar10.data, Npz)
    assert cifar10.data.train_limit == 10_000


def test_small_has_three_seeds_wherever_something_is_checked(sets: str) -> None:
    cifar10, mnist = studies(Order(scale="small", data=sets))
    plans = PAPER.plans([cifar10, mnist])
    few = [name for name, plan in plans.items() if len(plan.grid.seeds) < 3]
    # Checks are about the first set, and of batches about labels; of the other only the federation is checked.
    assert [name for name in few if name.startswith("CIFAR10")] == ["CIFAR10-attack-4-8"]
    assert plans["CIFAR10-labels-4-8"].grid.seeds == (0, 1, 2)
    assert not [name for name in few if "alexnet" in name]
    assert all(name.startswith("MNIST") for name in set(few) - {"CIFAR10-attack-4-8"})


def test_what_is_attacked_is_also_trained(sets: str) -> None:
    for scale in ("smoke", "small", "paper"):
        for steps in (None, 1):
            for study in studies(Order.model_validate({"scale": scale, "data": sets, "steps": steps})):
                for sweep in study.sweeps:
                    assert set(sweep.noise) <= set(study.noise)
                    assert set(sweep.alpha2) <= set(study.alpha2)
                assert study.sweeps[0].batch_sizes == (1,)
                assert set(study.bits_alpha2) <= set(study.sweeps[0].alpha2)
                assert set(study.laplace) <= set(study.sweeps[0].noise)


def test_every_participant_is_attacked_or_the_chance_level_of_tracing_would_change(sets: str) -> None:
    for scale in ("smoke", "small", "paper"):
        for study in studies(Order.model_validate({"scale": scale, "data": sets})):
            for sweep in study.sweeps:
                assert sweep.victims >= PARTICIPANTS


def test_the_full_experiment_has_the_settings_of_tables_2_and_3(sets: str) -> None:
    mnist, cifar10 = studies(Order(scale="paper", data=sets))
    assert (mnist.name, cifar10.name) == ("MNIST", "CIFAR10")
    assert (cifar10.rounds, cifar10.batch_size, cifar10.learning_rate) == (300, 32, 0.001)
    assert (cifar10.noise, cifar10.alpha2) == (NOISE, ALPHA2)
    assert [size for sweep in cifar10.sweeps for size in sweep.batch_sizes] == [1, 4, 8]
    assert {sweep.victims for sweep in cifar10.sweeps} == {1000}
    alexnet, vgg16 = cifar10.federations
    assert (alexnet.network, vgg16.network) == (AlexNet(), VGG16())
    assert (vgg16.clients, vgg16.rounds, vgg16.halved) == ((8, 20, 50, 100), 300, (100, 200))
    assert (vgg16.batch_size, vgg16.learning_rate, vgg16.alpha2, vgg16.sample) == (64, 0.01, 0.1, None)
    assert missing_sets(Order(scale="paper", data=sets)) == ["CIFAR100", "SVHN"]


def test_steps_keep_every_part_and_cut_what_is_counted(sets: str) -> None:
    full, cut = (studies(Order(scale="paper", data=sets, steps=steps))[1] for steps in (None, 1))
    assert [one.network for one in cut.federations] == [one.network for one in full.federations]
    assert [one.batch_sizes for one in cut.sweeps] == [one.batch_sizes for one in full.sweeps]
    assert (cut.bits, cut.batch_size, cut.learning_rate) == (full.bits, full.batch_size, full.learning_rate)
    assert (cut.rounds, cut.local_steps, cut.noise, cut.alpha2) == (1, 1, (0.0001, 0.5), (0.0001, 0.5))
    assert {(one.victims, one.iterations, one.noise) for one in cut.sweeps} == {(2, 1, (0.0001, 0.5))}
    assert {(one.rounds, one.local_steps, one.clients) for one in cut.federations} == {(1, 1, (8,))}
    [small, _] = studies(Order(scale="small", data=sets, steps=1))
    assert {plan.grid.seeds for plan in PAPER.plans([small]).values()} == {(0,)}
    assert isinstance(cut.data, Npz)
    assert (cut.data.train_limit, cut.data.test_limit) == (1000, 50)


def test_more_steps_than_there_are_change_nothing_there() -> None:
    [cut] = studies(Order(steps=1000))
    [full] = studies(Order())
    assert cut.rounds == full.rounds
    assert [one.iterations for one in cut.sweeps] == [one.iterations for one in full.sweeps]


def test_nothing_is_left_out_at_the_other_scales() -> None:
    assert missing_sets(Order()) == []
