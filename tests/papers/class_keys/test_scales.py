from __future__ import annotations

from pathlib import Path

import pytest
import torch

from leaktight.core.errors import InvalidValue
from leaktight.data import Digits
from leaktight.data.idx import Idx
from leaktight.models import LeNet
from leaktight.papers import Order
from leaktight.papers.class_keys import PAPER
from leaktight.papers.class_keys.scales import DIMENSIONS, DISTANCES, missing_sets, scope_of
from leaktight.papers.paper import Scale


def test_smoke_needs_no_files() -> None:
    scope = scope_of(Order())
    assert [study.data for study in scope.studies] == [Digits()]
    assert missing_sets(Order()) == []


@pytest.mark.parametrize("scale", ["small", "paper"])
def test_the_other_scales_need_a_folder_with_digits(scale: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidValue, match=f"The scale `{scale}` needs real data sets"):
        scope_of(Order.model_validate({"scale": scale}))
    with pytest.raises(InvalidValue, match="must have a sub-folder `mnist`"):
        scope_of(Order.model_validate({"scale": scale, "data": str(tmp_path)}))


def test_small_has_three_seeds_and_what_must_be_shown(sets: str) -> None:
    [study] = scope_of(Order(scale="small", data=sets)).studies
    assert study.seeds >= 3
    assert len(study.victims) == study.seeds
    assert {4096, 16_384} <= set(study.guessed)
    assert {4096, 16_384} <= set(study.fixed)
    assert study.dimensions in study.guessed
    assert study.looks[-1] == study.rounds
    assert (min(study.distances), max(study.distances)) == (0.1, 1.3)
    assert (study.crowd, study.participants) == (5, (2, 5))
    assert study.moments == "kept"
    # As many features as the public code has, so that keys of their length are worth it.
    assert study.network == LeNet(norm="instance", linear=(256, 256))
    # The class and the seed that settings were tried on are not among those that are measured.
    assert 3 not in study.victims


def test_every_scale_attacks_classes_of_the_first_half(sets: str) -> None:
    for scale in ("smoke", "small", "paper"):
        for study in scope_of(Order.model_validate({"scale": scale, "data": sets})).studies:
            assert max(study.victims) < study.classes // 2
            assert study.dimensions in study.guessed


def test_the_full_experiment_has_the_settings_of_the_public_code(sets: str) -> None:
    [study] = scope_of(Order(scale="paper", data=sets)).studies
    assert isinstance(study.data, Idx)
    assert study.data.train_limit is None
    assert (study.fixed, study.learned, study.guessed, study.distances) == (
        DIMENSIONS,
        DIMENSIONS,
        DIMENSIONS,
        DISTANCES,
    )
    assert (study.participants, study.crowd, study.batch_size) == ((2, 3, 5), 5, 128)
    attack = study.attack
    assert (attack.generator_steps, attack.batch_size, attack.fakes, attack.kept_rounds) == (200, 256, 2000, 5)
    assert attack.early_stop == 0.75
    assert missing_sets(Order(scale="paper", data=sets)) == ["Olivetti Faces", "CIFAR-10", "CIFAR-100"]


def test_sets_that_are_missing_are_told(sets: str) -> None:
    assert missing_sets(Order(scale="small", data=sets)) == ["Olivetti Faces", "CIFAR-10"]
    [remark, *_] = PAPER.remarks(Order(scale="small", data=sets), PAPER.setup(Order(scale="small", data=sets)))
    assert remark == "Left out, because the data folder has no such set: Olivetti Faces, CIFAR-10."


def test_every_attack_and_training_run_of_small_has_three_seeds_or_more(faces: str) -> None:
    plans = PAPER.plans(PAPER.setup(Order(scale="small", data=faces)))
    seeds: dict[str, set[int]] = {}
    for name, plan in plans.items():
        seeds.setdefault(name.rstrip("-0123456789"), set()).update(plan.grid.seeds)
    assert {name for name, drawn in seeds.items() if len(drawn) < 3} == set()
    assert len(seeds["mnist-crowd"]) == 5
    assert "olivetti-faces-estimated" not in seeds


@pytest.mark.parametrize("scale", ["small", "paper"])
def test_faces_are_attacked_where_they_are_there(faces: str, scale: Scale) -> None:
    _, study = scope_of(Order(scale=scale, data=faces)).studies
    assert (study.name, study.classes, study.rounds) == ("Olivetti Faces", 40, study.looks[-1])
    assert (study.guessed, study.estimated) == (((128, 4096), ()) if scale == "small" else (DIMENSIONS, (4096, 16_384)))
    assert max(study.distances) > 1.1
    assert isinstance(study.network, LeNet)
    assert (study.network.norm, study.network.linear) == ("instance", (512, 512))
    # Most of an attacker's turn are examples of its own.
    assert study.attack.fakes * study.attack.kept_rounds < 140
    loaded = study.data.load()
    assert loaded.train.inputs.shape[1:] == (1, 64, 64)
    # Three of ten pictures of each person are held out.
    assert torch.bincount(loaded.test.labels).tolist() == [3] * 40


def test_steps_keep_every_part_and_cut_what_is_counted(sets: str) -> None:
    full, cut = (scope_of(Order(scale="small", data=sets, steps=steps)) for steps in (None, 1))
    [whole], [least] = full.studies, cut.studies
    assert (least.rounds, least.looks, least.local_steps, least.seeds) == (1, (1,), 1, 1)
    assert (least.attack.generator_steps, least.attack.fakes, least.attack.samples) == (1, 8, 20)
    assert least.dimensions in least.guessed
    assert (least.network, least.batch_size, least.victims) == (whole.network, whole.batch_size, whole.victims)
    assert least.participants == whole.participants[:2]
    assert cut.repeats == 2
    more = scope_of(Order(steps=10_000)).studies[0]
    assert (more.rounds, more.local_steps) == (120, 2)
    remarks = PAPER.remarks(
        Order(scale="small", data=sets, steps=1), PAPER.setup(Order(scale="small", data=sets, steps=1))
    )
    assert remarks[0].startswith("Cut by --steps 1: at most 1 rounds")
