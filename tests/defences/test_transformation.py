"""Transformation: only changed images are trained on, the policy comes from the settings or a file, and tables are refused."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor

from leaktight.core.defence import Chain, Defence, Undefended
from leaktight.core.errors import InvalidValue, Refusal
from leaktight.core.local import Local
from leaktight.core.random import stream
from leaktight.core.task import Batch
from leaktight.data import Digits
from leaktight.defences import GaussianNoise, Transformation
from leaktight.findings.display import name_of
from leaktight.learning.gradient import gradient
from leaktight.testing.cut import cut_run
from leaktight.testing.defences import (
    check_chains,
    check_defence,
    check_extremes,
    check_form,
    check_input,
    check_seed,
    check_streams,
)
from leaktight.testing.toys import toy_batch, toy_run, toy_task
from leaktight.testing.values import check_value
from leaktight.transforms import PUBLISHED, Policy, crop_flip

HYBRID = PUBLISHED["ats2021-resnet20-cifar100"]


def local(seed: int = 0, round: int = 0) -> Local:
    found = Local("client-0", seed)
    found.begin(round)
    return found


def batch(count: int = 32, channels: int = 3) -> Batch:
    images = torch.rand(count, channels, 16, 16, generator=stream(0, "batch"))
    return Batch(images, torch.arange(count) % 4, torch.arange(count) % 2)


def levels(images: Tensor) -> Tensor:
    return (images * 255).round() / 255


@pytest.mark.parametrize(
    "defence",
    [
        Transformation(policy=HYBRID),
        Transformation(policy=HYBRID, crop_flip=True),
        Transformation(policy=Policy.of("9-15"), probability="listed"),
        Transformation(policy=Policy.of("0")),
        Transformation(policy=HYBRID, draw="once"),
    ],
    ids=str,
)
def test_it_keeps_the_promises_of_a_defence(defence: Defence) -> None:
    check_defence(defence)


def test_crop_and_flip_alone_keep_the_promises_too() -> None:
    """All but the canary: the gradient of a pixel that was cropped to black is zero, which is that pixel's own value."""
    defence = Transformation(crop_flip=True)
    for check in (check_value, check_form, check_input, check_seed, check_streams, check_extremes, check_chains):
        check(defence)


@pytest.mark.parametrize("channels", [1, 3])
def test_the_batch_is_what_the_policy_makes_of_it(channels: int) -> None:
    raw = batch(channels=channels)
    used = Transformation(policy=HYBRID).on_batch(raw, local())
    assert torch.equal(used.inputs, HYBRID.apply(raw.inputs, local().draws))
    assert torch.equal(used.labels, raw.labels)
    assert used.properties is not None
    assert torch.equal(used.properties, torch.arange(32) % 2)
    assert torch.equal(raw.inputs, batch(channels=channels).inputs)


def test_crop_and_flip_come_first() -> None:
    raw, rng = batch(), local().draws
    wanted = HYBRID.apply(crop_flip(raw.inputs, rng), rng)
    assert torch.equal(Transformation(policy=HYBRID, crop_flip=True).on_batch(raw, local()).inputs, wanted)
    assert torch.equal(
        Transformation(crop_flip=True).on_batch(raw, local()).inputs, crop_flip(raw.inputs, local().draws)
    )


def test_listed_probabilities_reach_the_policy() -> None:
    never = Transformation(policy=Policy.of("29"), probability="listed")
    assert torch.equal(never.on_batch(batch(), local()).inputs, levels(batch().inputs))
    always = Transformation(policy=Policy.of("29")).on_batch(batch(), local()).inputs
    assert torch.allclose(always, 1 - levels(batch().inputs), atol=1e-6)


def test_no_original_is_trained_on_and_steps_of_one_round_differ() -> None:
    raw, party, defence = batch(), local(), Transformation(policy=HYBRID)
    first, second = (defence.on_batch(raw, party).inputs for _ in range(2))
    assert not torch.equal(first, second)
    for used in (first, second):
        assert not any(torch.equal(one, two) for one, two in zip(used, levels(raw.inputs), strict=True))


def test_what_is_drawn_once_is_the_same_in_every_round_and_another_for_another_party() -> None:
    raw, party, defence = batch(), local(), Transformation(policy=HYBRID, draw="once")
    first = defence.on_batch(raw, party).inputs
    party.begin(7)
    assert torch.equal(defence.on_batch(raw.take(torch.arange(31, -1, -1)), party).inputs, first.flip(0))
    assert not torch.equal(defence.on_batch(raw, local(seed=1)).inputs, first)
    assert not defence.redraws
    assert Transformation(policy=HYBRID).redraws
    assert "draw" not in Transformation(policy=HYBRID).to_dict()


def test_the_channel_says_whether_draws_last() -> None:
    once, each = (Transformation(policy=HYBRID, draw=draw) for draw in ("once", "each_step"))
    channels = [Chain(links=links).channel(toy_task()) for links in ((once,), (once, once), (once, each), (each,))]
    assert [channel.lasting for channel in channels] == [True, True, False, False]
    assert not Chain(links=(GaussianNoise(std=0.1),)).channel(toy_task()).lasting


def test_the_message_is_the_gradient_of_the_changed_images() -> None:
    run = toy_run(Transformation(policy=Policy.of("0-15")), rounds=2)
    plain = toy_run(Undefended(), rounds=2)
    for key, ground_truth in run.truths.items():
        assert torch.equal(ground_truth.raw.inputs, plain.truths[key].raw.inputs)
        factors = torch.tensor([0.5, 1.5]).view(2, 1, 1, 1, 1)
        ways = ((1 - levels(ground_truth.raw.inputs)) * factors).clamp(max=1)
        away = (ways - ground_truth.used.inputs).flatten(2).abs().amax(2).amin(0)
        assert away.max() < 1.01 / 255
    first = next(iter(run.truths.values()))
    sent = run.transcript[0].tensors
    wanted = gradient(toy_task(), toy_task().model_parameters(sent), first.used).tensors
    for name, tensor in first.sent.tensors.items():
        assert torch.allclose(tensor, wanted[name], atol=1e-6)


def test_outcomes_are_those_of_the_policy_and_the_mirror() -> None:
    shape = (3, 16, 16)
    assert [(one.weight, one.name) for one in Transformation(policy=Policy.of("3-0")).outcomes(shape)] == [
        (0.5, "3+ 0"),
        (0.5, "3- 0"),
    ]
    listed = Transformation(policy=Policy.of("0"), probability="listed").outcomes(shape)
    assert {one.name: one.weight for one in listed} == {"as it is": 0.9, "0": 0.1}
    flips = Transformation(crop_flip=True).outcomes(shape)
    assert [(one.weight, one.name) for one in flips] == [(0.5, "as it is"), (0.5, "mirrored as it is")]
    images = batch(4).inputs
    assert torch.equal(flips[1].change(images), images.flip(-1))


def test_each_used_image_is_one_of_the_outcomes() -> None:
    raw, defence = Batch(levels(batch().inputs), batch().labels), Transformation(policy=HYBRID)
    used = defence.on_batch(raw, local()).inputs
    known = torch.stack([one.change(raw.inputs) for one in defence.outcomes((3, 16, 16))])
    away = (known - used).flatten(2).abs().amax(2).amin(0)
    assert away.max() < 1e-6


@pytest.mark.parametrize("shape", [(5,), (2, 8, 8), (8, 8)], ids=str)
def test_examples_that_are_no_images_are_refused(shape: tuple[int, ...]) -> None:
    sentence = f"transformation changes images of 1 or 3 channels. Got examples of shape {shape} instead."
    for defence in (Transformation(policy=HYBRID), Transformation(crop_flip=True)):
        for refuse in (
            lambda defence=defence: defence.on_batch(Batch(torch.rand(3, *shape), torch.zeros(3)), local()),
            lambda defence=defence: defence.outcomes(shape),
        ):
            with pytest.raises(Refusal) as caught:
                refuse()
            assert str(caught.value) == sentence


def test_pixels_that_are_no_numbers_are_refused() -> None:
    raw = batch()
    raw.inputs[0, 0, 0, 0] = torch.nan
    for defence in (Transformation(policy=HYBRID), Transformation(crop_flip=True)):
        with pytest.raises(
            InvalidValue, match=r"The pixels of a transformation must be in \[0, 1\]\. Got numbers from nan to nan"
        ):
            defence.on_batch(raw, local())


def test_a_policy_file_is_read_once_and_what_was_in_it_is_recorded(tmp_path: Path) -> None:
    file = tmp_path / "policy.toml"
    file.write_text('policy = "3-1-7+43-18-18"\n')
    for found in (Transformation.model_validate({"file": file}), Transformation(file=str(file))):
        assert found == Transformation(policy=HYBRID)
        assert found.key == Transformation(policy=HYBRID).key
    cropped = Defence.model_validate({"kind": "transformation", "file": str(file), "crop_flip": True})
    file.unlink()
    # Records and workers elsewhere need no file, and learn no path.
    assert Defence.model_validate(cropped.to_dict()) == cropped == Transformation(policy=HYBRID, crop_flip=True)
    assert str(tmp_path) not in cropped.model_dump_json()
    with pytest.raises(InvalidValue, match="There is no file or folder"):
        Transformation(file=str(file))


def test_the_name_in_a_report_tells_the_policy(tmp_path: Path) -> None:
    file = tmp_path / "policy.toml"
    file.write_text('policy = "3-1-7+43-18-18"\n')
    assert name_of(Transformation(file=str(file))) == "transformation (policy 3-1-7+43-18-18)"


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (
            {},
            "transformation must be told what to do by `policy` or `file`, or to `crop_flip`. Got none of them "
            "instead.",
        ),
        (
            {"policy": "3", "file": "policy.toml"},
            "transformation must be told its policy by one of `policy` and `file`. Got both instead.",
        ),
        ({"policy": "3-99"}, "The `branches` of Policy must be made of indices in 0..49. Got 99 instead."),
        (
            {"policy": "3;1"},
            "A policy must be indices joined by `-`, and branches by `+`, as `3-1-7+43-18-18`. Got '3;1' instead.",
        ),
        (
            {"policy": "3", "probability": "often"},
            "The `probability` of transformation must be one of 'always' or 'listed'.",
        ),
        ({"file": 3}, "The `file` of transformation must be a valid string. Got 3 instead."),
        ({"policy": "3", "strength": 1}, "transformation has no setting `strength`."),
    ],
)
def test_wrong_settings_are_told_in_one_sentence(settings: dict[str, object], sentence: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        Transformation.model_validate(settings)
    assert str(caught.value).startswith(sentence)


def test_it_is_a_value_found_by_its_kind() -> None:
    found = Defence.model_validate({"kind": "transformation", "policy": "3-1-7+43-18-18"})
    assert found == Transformation(policy=HYBRID)
    assert found.to_dict()["policy"] == "3-1-7+43-18-18"
    assert str(found) == "transformation(policy=Policy.of('3-1-7+43-18-18'))"
    assert found.strength is None
    assert found.key != Transformation(policy=Policy.of("3-1-7")).key


def test_it_chains_with_noise_and_has_a_scope_of_its_own() -> None:
    raw, chain = toy_batch(), Chain(links=(GaussianNoise(std=0.1), Transformation(policy=HYBRID)))
    party = local()
    used = chain.on_batch(raw, party)
    assert torch.equal(used.inputs, HYBRID.apply(raw.inputs, local().scope("1-transformation").draws))


def test_a_split_party_without_images_refuses() -> None:
    table = toy_batch(6, shape=(12,))
    with pytest.raises(
        Refusal, match=r"transformation changes images of 1 or 3 channels\. Got examples of shape \(12,\) instead\."
    ):
        cut_run(Transformation(policy=HYBRID), task=toy_task(shape=(12,)), data=table)


def test_digits_are_grey_images_and_stay_in_range() -> None:
    data = Digits(size=16).load().train
    used = Transformation(policy=HYBRID, crop_flip=True).on_batch(data.take(torch.arange(200)), local()).inputs
    assert used.shape == (200, 1, 16, 16)
    assert used.min() >= 0
    assert used.max() <= 1
    assert len(used.unique(dim=0)) > 190
