from __future__ import annotations

from pathlib import Path

import pytest

from leaktight.core.errors import InvalidValue
from leaktight.data import Parity
from leaktight.data.attributes import Attributes
from leaktight.models import DeepDLNet
from leaktight.papers import Order
from leaktight.papers.layer_leakage import PAPER
from leaktight.papers.layer_leakage.scales import SETS, Study, missing_sets, study_of


def test_smoke_needs_no_files() -> None:
    study = study_of(Order())
    assert study.subjects[0].data == Parity(size=16)
    assert (study.networks, study.properties_on) == (("AlexNet",), "AlexNet")
    assert study.properties[0].task == study.subjects[0].task


@pytest.mark.parametrize("scale", ["small", "paper"])
def test_the_other_scales_need_a_folder_with_faces_and_images(scale: str, tmp_path: Path, folder: Path) -> None:
    with pytest.raises(InvalidValue, match=f"The scale `{scale}` needs real data sets"):
        study_of(Order.model_validate({"scale": scale}))
    with pytest.raises(InvalidValue, match="There is no folder"):
        study_of(Order.model_validate({"scale": scale, "data": str(tmp_path / "nowhere")}))
    (folder / "cifar100").unlink()
    with pytest.raises(InvalidValue, match="must have a sub-folder `cifar100`"):
        study_of(Order.model_validate({"scale": scale, "data": str(folder)}))
    (folder / "lfw").unlink()
    with pytest.raises(InvalidValue, match="must have a sub-folder `lfw`"):
        study_of(Order.model_validate({"scale": scale, "data": str(folder)}))


def test_small_has_three_seeds_of_two_subjects_on_three_networks(study: Study) -> None:
    assert [(one.data_set, one.task, one.private) for one in study.subjects] == [
        ("LFW", "gender", "race: Black"),
        ("LFW", "glasses", "gender: Male"),
    ]
    assert (study.networks, study.seeds) == (("AlexNet", "VGG11Net", "FCNet"), 3)
    assert [one.private for one in study.properties] == ["age: Senior", "hair: black"]
    assert {one.task for one in study.properties} == {"glasses"}
    assert [one.task for one in study.tasks] == ["race", "hair", "age"]
    for subject in (*study.subjects, *study.properties, *study.tasks):
        assert isinstance(subject.data, Attributes)
        assert not set(subject.data.label) & set(subject.data.private_property)


@pytest.mark.parametrize("scale", ["smoke", "small", "paper"])
def test_half_of_the_messages_have_the_property_from_every_moment_on(scale: str, sets: str) -> None:
    """One batch in two has the property, counted from the first: moments begin at even rounds, and last as long."""
    study = study_of(Order.model_validate({"scale": scale, "data": sets}))
    rounds = study.messages // 2
    assert rounds % study.moments == 0
    assert rounds <= study.rounds
    if scale != "paper":
        assert study.rounds % (2 * study.moments) == 0
        assert rounds // study.moments % 2 == 0


@pytest.mark.parametrize(
    ("scale", "networks"), [("smoke", ("AlexNet",)), ("small", ("AlexNet", "VGG11Net")), ("paper", ("AlexNet",))]
)
def test_mixed_batches_are_half_and_on_networks_that_have_pure_ones_too(
    scale: str, networks: tuple[str, ...], sets: str
) -> None:
    study = study_of(Order.model_validate({"scale": scale, "data": sets}))
    assert (study.mixed_on, study.mixed) == (networks, 0.5)
    assert set(study.mixed_on) <= set(study.networks)


def test_the_full_experiment_has_the_settings_of_section_5(sets: str) -> None:
    study = study_of(Order(scale="paper", data=sets))
    assert (study.rounds, study.batch_size, study.learning_rate, study.seeds, study.repeats) == (3000, 32, 0.01, 20, 20)
    assert (study.seat, study.mixed_on, study.entries) == ("client-1", ("AlexNet",), 48)
    assert study.compared == study.networks == ("AlexNet", "VGG11Net", "FCNet")
    assert study.inversion.network == DeepDLNet(depth=7, width=12)
    assert study.inversion.sets == SETS
    assert all(subject.data.to_dict()["size"] is None for subject in study.subjects)
    # Sixteen gradients of the attacker's own in each round that is looked at.
    assert study.gradients == 16 * study.messages // 2


def test_celeba_and_pubfig_are_told_to_be_missing(folder: Path) -> None:
    order = Order(scale="paper", data=str(folder))
    assert missing_sets(order) == ["CelebA", "PubFig"]
    assert "Left out, because the data folder has no such set: CelebA, PubFig." in PAPER.remarks(
        order, PAPER.setup(order)
    )
    assert missing_sets(Order()) == missing_sets(Order(scale="small", data=str(folder))) == []


def test_celeba_and_pubfig_are_used_where_they_are(folder: Path) -> None:
    for name in ("celeba", "pubfig"):
        (folder / name).symlink_to(folder / "lfw")
    order = Order(scale="paper", data=str(folder))
    assert missing_sets(order) == []
    found = [(one.data_set, one.task, one.private, one.data.to_dict()["size"]) for one in study_of(order).subjects]
    assert found[2:] == [("CelebA", "glasses", "gender: Female", 64), ("PubFig", "gender", "race: Black", 100)]


@pytest.mark.parametrize("scale", ["smoke", "small", "paper"])
def test_steps_keep_every_part_and_cut_what_is_counted(scale: str, sets: str) -> None:
    whole, cut = (study_of(Order.model_validate({"scale": scale, "data": sets, "steps": steps})) for steps in (None, 1))
    kept = (
        "networks",
        "compared",
        "properties_on",
        "mixed_on",
        "mixed",
        "batch_size",
        "learning_rate",
        "seat",
        "entries",
    )
    for name in kept:
        assert getattr(cut, name) == getattr(whole, name)
    for name in ("subjects", "properties", "tasks"):
        assert [one.private for one in getattr(cut, name)] == [one.private for one in getattr(whole, name)]
    assert cut.inversion.sets == whole.inversion.sets
    assert {plan.grid.seeds for plan in PAPER.plans(cut).values()} == {(0,)}
    assert (cut.inversion.iterations, cut.seeds, cut.few, cut.repeats, cut.gradients, cut.moments) == (
        1,
        1,
        1,
        1,
        20,
        1,
    )
    # A participant sees one message in two, and of four two have the property.
    assert (cut.rounds, cut.messages) == (4, 8)


def test_files_are_cut_and_what_is_told_is_what_was_done(sets: str) -> None:
    order = Order(scale="paper", data=sets, steps=3)
    data = study_of(order).subjects[0].data.load()
    assert len(data.train) <= 300
    assert len(data.test) <= 150
    [told, *_] = PAPER.remarks(order, PAPER.setup(order))
    assert told.startswith("Cut by --steps 3: 4 rounds, 8 messages, 20 gradients of the attacker's own, one seed")
    assert "inversion of 2 images by at most 3 of its iterations, 300 training and 150 test images" in told
    assert "300 training" not in PAPER.cut(Order(steps=3))
